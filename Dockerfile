# Parley in a container: one process, not root, with all state in /data and nothing written elsewhere.
# docs/OPERATIONS.md says how to run it. No key or token belongs in here: they come with the environment.
# Each stage has the same exact version of Node. Dependabot proposes newer ones.

# The package, as npm would publish it.
FROM node:24.21.0-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY build.js tsconfig.json tsconfig.types.json tsdown.config.ts LICENSE README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md ./
COPY bin bin
COPY docs docs
COPY src src
COPY ui ui
RUN npm run build && npm pack --ignore-scripts --pack-destination /tmp

# What it needs to run, and no more. The lock file, which packages do not carry, says which versions.
# The image has a Node, so it leaves out the one that the package brings.
FROM node:24.21.0-bookworm-slim AS install
WORKDIR /opt/parley
COPY --from=build /tmp/parley-gateway-*.tgz /tmp/parley.tgz
RUN tar -xzf /tmp/parley.tgz --strip-components=1
COPY package-lock.json .npmrc ./
RUN npm ci --omit=dev --ignore-scripts && rm -r node_modules/node-linux-*
# The libraries of traces, which no install has by itself: an image is not installed into later.
RUN npm install --prefix /opt --no-save --ignore-scripts \
  $(node -p 'Object.entries(require("./package.json").peerDependencies).map((one) => one.join("@")).join(" ")')

FROM node:24.21.0-bookworm-slim
LABEL org.opencontainers.image.title="Parley" \
  org.opencontainers.image.licenses="MIT" \
  org.opencontainers.image.source="https://github.com/parley-gateway/parley"
# Owned by root: the gateway, and whatever its agents run, cannot change the program.
COPY --from=install /opt /opt
RUN ln -s /opt/parley/bin/parley.js /usr/local/bin/parley \
  && ln -s parley /usr/local/bin/parley-gateway \
  && mkdir /data && chown node:node /data && chmod 700 /data
# The configuration is /data/.parley/parley.json5, the store /data/.parley/state.
ENV HOME=/data NODE_ENV=production
USER node
WORKDIR /data
VOLUME /data
EXPOSE 7275
# Ready means that the store answers, too. A stop takes at most about 6 s, less than docker's 10 s.
HEALTHCHECK --interval=15s --timeout=5s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:7275/readyz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "/opt/parley/bin/parley.js"]
CMD ["gateway", "--host", "0.0.0.0", "--port", "7275"]

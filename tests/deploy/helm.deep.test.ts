// The Helm chart. helm/render.go renders it with the libraries of Helm, because Helm itself is in no registry
// that the tests may use; .github/workflows/test.yml runs `helm lint` and `helm template`. Types and schemas of
// Kubernetes check what it renders, and a real gateway reads the rendered settings.

import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ServiceMonitor } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1";
import { StatefulSet } from "kubernetes-models/apps/v1";
import { NetworkPolicy } from "kubernetes-models/networking.k8s.io/v1";
import { ConfigMap, Service } from "kubernetes-models/v1";
import Schema from "typebox/schema";
import { beforeAll, describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { cleanup, forFile, temporaryFolder } from "../kit/cleanup.ts";
import { freePort } from "../kit/loopback.ts";
import { addressOf, launch, TOKEN } from "../kit/process/fleet.ts";
import { lacks } from "../kit/process/lacks.ts";
import { ROOT, readDockerfile } from "./compose.ts";

const CHART = join(ROOT, "deploy/helm/parley");
const MODELS = { ConfigMap, NetworkPolicy, Service, ServiceMonitor, StatefulSet };
const MODULES = {
  ConfigMap: "kubernetes-models/v1",
  NetworkPolicy: "kubernetes-models/networking.k8s.io/v1",
  Service: "kubernetes-models/v1",
  ServiceMonitor: "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1",
  StatefulSet: "kubernetes-models/apps/v1",
};
/** Where Debian's packages put libraries for Go. */
const LIBRARIES = "/usr/share/gocode";

type Values = Readonly<Record<string, unknown>>;
const read = (name: string): unknown => parse(readFileSync(join(CHART, name), "utf8"));
const accepts = (values: unknown): boolean =>
  Schema.Compile(JSON.parse(readFileSync(join(CHART, "values.schema.json"), "utf8"))).Check(values);

const SECRET = { existingSecret: "parley-secrets" };
const CLUSTER = { ...SECRET, replicas: 3, postgresql: { url: "postgres://parley@postgres:5432/parley" } };
const EVERYTHING = {
  ...CLUSTER,
  image: { tag: "1.2.3" },
  imagePullSecrets: [{ name: "pull" }],
  config: { gateway: { allowedHosts: ["parley.example"] }, agents: { defaults: { maxConcurrent: 4 } } },
  persistence: { storageClassName: "fast" },
  nodeSelector: { disk: "ssd" },
  tolerations: [{ key: "agents", operator: "Exists" }],
  affinity: { podAntiAffinity: {} },
  serviceMonitor: { enabled: true, labels: { release: "prometheus" } },
  networkPolicy: { enabled: true, from: [{ podSelector: { matchLabels: { role: "proxy" } } }] },
};

interface Manifest {
  readonly kind: keyof typeof MODELS;
  readonly metadata: { readonly name: string };
  // biome-ignore lint/suspicious/noExplicitAny: the models check its form.
  readonly spec: any;
  readonly data?: Readonly<Record<string, string>>;
}

test("each default value has a place in the schema, and the schema refuses misspelt and wrong values", () => {
  const defaults = read("values.yaml") as Record<string, unknown>;
  const { properties } = read("values.schema.json") as { properties: Record<string, unknown> };
  expect(Object.keys(defaults).sort()).toEqual(
    Object.keys(properties)
      .filter((name) => name !== "global")
      .sort(),
  );
  for (const values of [defaults, CLUSTER, EVERYTHING]) expect(accepts(values)).toBe(true);
  for (const values of [
    { replica: 3 },
    { replicas: "3" },
    { postgresql: { url: "mysql://db" } },
    { terminationGracePeriodSeconds: 5 },
  ])
    expect({ values, accepted: accepts(values) }).toEqual({ values, accepted: false });
});

test("the chart has the program's version", () => {
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
  expect(read("Chart.yaml")).toMatchObject({ name: "parley", version, appVersion: version });
});

// Skipped on machines without Go and its libraries.
describe.skipIf(lacks("go"))("the rendered chart", () => {
  let program: string;
  beforeAll(() =>
    forFile(async () => {
      // Go makes and runs programs there, which a folder in memory may forbid.
      const folder = temporaryFolder(tmpdir());
      program = join(folder, "render");
      execFileSync("go", ["build", "-o", program, join(ROOT, "tests/deploy/helm/render.go")], {
        env: { ...process.env, GO111MODULE: "off", GOPATH: LIBRARIES, GOCACHE: join(folder, "cache") },
      });
    }),
  );

  /** Renders the chart. Returns its manifests by their kinds, and why it was refused. */
  function render(values: Values): {
    of(kind: Manifest["kind"]): Manifest;
    all: Manifest[];
    refused: string;
  } {
    const { status, stdout, stderr } = spawnSync(program, [CHART], {
      input: JSON.stringify(values),
      encoding: "utf8",
    });
    const texts = status === 0 ? (JSON.parse(stdout) as Record<string, string>) : {};
    const all = Object.entries(texts)
      .filter(([name]) => name.endsWith(".yaml"))
      .flatMap(([, text]) => parseAllDocuments(text, { strict: true }))
      .map((document) => {
        if (document.errors.length > 0) throw document.errors[0];
        return document.toJS() as Manifest | null;
      })
      .filter((manifest) => manifest !== null);
    const of = (kind: Manifest["kind"]): Manifest => {
      const found = all.find((manifest) => manifest.kind === kind);
      if (found === undefined) throw new Error(`no ${kind}: ${stderr}`);
      return found;
    };
    return { of, all, refused: stderr };
  }

  test("one gateway on the embedded store is the default, and has a volume of its own", () => {
    const { of, all } = render({});
    expect(all.map(({ kind }) => kind).sort()).toEqual(["ConfigMap", "Service", "StatefulSet"]);
    const { spec } = of("StatefulSet");
    expect(spec.replicas).toBe(1);
    expect(spec.volumeClaimTemplates[0].spec.resources.requests.storage).toBe("5Gi");
    expect(JSON.stringify(spec)).not.toContain("PARLEY_DATABASE_URL");
  });

  test.each([
    { values: { replicas: 2 }, why: "Set postgresql.url" },
    { values: { ...CLUSTER, existingSecret: "" }, why: "Set existingSecret" },
    { values: { serviceMonitor: { enabled: true } }, why: "/metrics needs a token" },
  ])("the chart refuses $values in words", ({ values, why }) => {
    expect(render(values)).toMatchObject({ all: [], refused: expect.stringContaining(why) });
  });

  test("a gateway runs as a user without rights, cannot write its own files, and gets more time than a stop takes", () => {
    const { spec } = render(EVERYTHING).of("StatefulSet").spec.template;
    const [container] = spec.containers;
    expect(spec).toMatchObject({
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: "RuntimeDefault" } },
    });
    expect(spec.terminationGracePeriodSeconds).toBeGreaterThan(10);
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
    expect(container.livenessProbe.httpGet).toEqual({ path: "/healthz", port: "http" });
    expect(container.readinessProbe.httpGet).toEqual({ path: "/readyz", port: "http" });
    const written = container.volumeMounts.filter(({ readOnly }: { readOnly?: true }) => readOnly !== true);
    expect(written.map(({ mountPath }: { mountPath: string }) => mountPath)).toEqual(["/data", "/tmp"]);
    expect(readDockerfile()).toContainEqual({ name: "VOLUME", rest: "/data" });
    expect(readDockerfile()).toContainEqual({
      name: "EXPOSE",
      rest: String(container.ports[0].containerPort),
    });
  });

  test("without persistence nothing is claimed, and gateways may share a claim", () => {
    const volumes = (values: Values) => {
      const { spec } = render(values).of("StatefulSet");
      const data = spec.template.spec.volumes.find(({ name }: { name: string }) => name === "data");
      return { claims: spec.volumeClaimTemplates, data };
    };
    expect(volumes({ persistence: { enabled: false } })).toEqual({ data: { name: "data", emptyDir: {} } });
    expect(volumes({ persistence: { existingClaim: "shared" } })).toEqual({
      data: { name: "data", persistentVolumeClaim: { claimName: "shared" } },
    });
  });

  test.each([{ values: {} }, { values: EVERYTHING }, { values: { persistence: { existingClaim: "x" } } }])(
    "Kubernetes knows every field of what $values render, and each has a valid value",
    ({ values }) => {
      const { all } = render(values);
      for (const manifest of all) new MODELS[manifest.kind](manifest as never).validate();
      // The schemas allow unknown fields; the types do not.
      const folder = temporaryFolder();
      symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
      const check = (manifests: readonly Manifest[]) => {
        const lines = manifests.map((manifest, at) => {
          const type = `import("${MODULES[manifest.kind]}").I${manifest.kind}`;
          return `export const manifest${at}: ${type} = ${JSON.stringify(manifest)};`;
        });
        writeFileSync(join(folder, "all.ts"), lines.join("\n"));
        const flags = [
          "--noEmit",
          "--strict",
          "--skipLibCheck",
          "--module",
          "nodenext",
          "--target",
          "es2024",
        ];
        const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
        return spawnSync(process.execPath, [tsc, ...flags, "all.ts"], { cwd: folder, encoding: "utf8" })
          .stdout;
      };
      expect(check(all)).toBe("");
      const [first] = all;
      if (first !== undefined) expect(check([{ ...first, bogus: 1 } as Manifest])).toContain("bogus");
    },
  );

  test("a real gateway reads the rendered settings, and accepts the names of the Service and the pod's address", async () => {
    const { of } = render(EVERYTHING);
    const home = temporaryFolder();
    const file = join(home, "parley.json5");
    writeFileSync(file, of("ConfigMap").data?.["parley.json5"] ?? "", { mode: 0o440 });
    const [container] = of("StatefulSet").spec.template.spec.containers;
    const names = container.env.map(({ name }: { name: string }) => name);
    expect(names).toEqual(["POD_IP", "PARLEY_CONFIG", "PARLEY_DATABASE_URL"]);
    const port = await freePort();
    const args = ["gateway", "--host", "127.0.0.1", "--port", String(port)];
    const env = { POD_IP: "10.1.2.3", PARLEY_CONFIG: file, PARLEY_TOKEN: TOKEN };
    const child = launch(home, args, [], env);
    cleanup(() => void child.kill("SIGKILL"));
    let log = "";
    child.stderr?.on("data", (piece: Buffer) => {
      log += piece.toString();
    });
    await addressOf(child);
    const ask = (host: string) =>
      new Promise((resolve, reject) => {
        const headers = { host, authorization: `Bearer ${TOKEN}` };
        request({ host: "127.0.0.1", port, path: "/metrics", headers }, (answer) => {
          answer.resume();
          resolve(answer.statusCode);
        })
          .on("error", reject)
          .end();
      });
    for (const host of ["parley", "parley.agents.svc.cluster.local", "10.1.2.3:7275", "parley.example"])
      expect({ host, status: await ask(host) }).toEqual({ host, status: 200 });
    expect(await ask("10.1.2.4:7275")).toBe(403);
    expect(log).toBe("");
  });
});

test("each template of the chart is a manifest, a definition or a note", () => {
  const files = readdirSync(join(CHART, "templates"));
  expect(files.filter((name) => !/^(\w+\.yaml|_helpers\.tpl|NOTES\.txt)$/.test(name))).toEqual([]);
});

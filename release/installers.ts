// Writes the install script and the Homebrew formula of a version, with the checksums of its archives.

import { readFileSync } from "node:fs";
import type { Archive } from "./archives.ts";

const DOWNLOADS = "https://github.com/parley-gateway/parley/releases/download";

export function writeInstallScript(version: string, archives: readonly Archive[]): string {
  const rows = archives
    .filter(({ file }) => file.endsWith(".tar.gz"))
    .map(({ system, sha256 }) => `    ${system}) echo ${sha256} ;;`);
  return readFileSync(new URL("install.sh", import.meta.url), "utf8")
    .replaceAll("@VERSION@", version)
    .replaceAll("@DOWNLOADS@", DOWNLOADS)
    .replace(/^ *@CHECKSUMS@$/m, rows.join("\n"));
}

export function writeFormula(version: string, archives: readonly Archive[]): string {
  const urls = (os: string, where: string): string[] => {
    const cpus = [
      ["arm64", "on_arm"],
      ["x64", "on_intel"],
    ] as const;
    const parts = cpus.flatMap(([cpu, block]) => {
      const archive = archives.find(({ system }) => system === `${os}-${cpu}`);
      if (archive === undefined) return [];
      const url = `${DOWNLOADS}/v${version}/${archive.file}`;
      return [`    ${block} do`, `      url "${url}"`, `      sha256 "${archive.sha256}"`, "    end"];
    });
    return parts.length === 0 ? [] : [`  ${where} do`, ...parts, "  end", ""];
  };
  return `class ParleyGateway < Formula
  desc "Gateway in which AI agents hold sessions and work across them"
  homepage "https://parley-gateway.github.io/parley/"
  version "${version}"
  license "MIT"

${[...urls("macos", "on_macos"), ...urls("linux", "on_linux")].join("\n")}
  def install
    libexec.install Dir["*"]
    bin.install_symlink libexec/"parley"
    bin.install_symlink libexec/"parley" => "parley-gateway"
  end

  service do
    run [opt_bin/"parley", "gateway"]
    keep_alive true
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/parley --version")
  end
end
`;
}

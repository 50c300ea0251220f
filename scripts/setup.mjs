/**
 * Sets up a fresh machine and skips every step that is already done. This is plain JavaScript for Node.js 20 without dependencies, because it installs them;
 * the rest is in finish-setup.ts. `--dev` also installs what the tests need.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { accessSync, constants, existsSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const node = path.join(root, "node_modules", ".bin", "node");
const startedAt = Date.now();

if (process.platform !== "linux") fail(`Sluice runs on Linux, not on ${process.platform}.`);
if (Number(process.versions.node.split(".")[0]) < 20) fail(`Set-up needs Node.js 20 or newer; this is ${process.version}.`);
/** The tests of the page use a real browser and a font that looks the same everywhere. */
const presentForTests = {
  chromium: () => findProgram("chromium"),
  "fonts-noto-core": () => existsSync("/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf"),
};

installSystemPackages();
installNpmPackages();
run(node, ["scripts/finish-setup.ts", ...process.argv.slice(2)], { stdio: "inherit" }, () => "");
say(`Set-up is complete (${seconds(startedAt)}).`);

function installSystemPackages() {
  const missing = missingSystemPackages();
  if (missing.length === 0) return;
  const install = `apt-get install -y --no-install-recommends ${missing.join(" ")}`;
  if (!findProgram("apt-get"))
    fail(`These programs are missing, and there is no apt-get to install them (names of Debian packages): ${missing.join(", ")}`);
  if (process.getuid() !== 0)
    fail(`System packages are missing. Run this once, then try again:\n\n  sudo sh -c 'apt-get update && ${install}'\n`);
  const apt = (...args) => [
    "apt-get",
    ["-q", "-o", "DPkg::Lock::Timeout=600", ...args],
    { env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" } },
  ];
  timed(`System packages: ${missing.join(", ")}`, () => {
    withLock("apt", () => {
      // A partly reachable index may be enough. If not, the installation fails.
      const update = spawnSync(...apt("update"));
      const complaints = String(update.stderr ?? update.error?.message ?? "");
      run(
        ...apt("install", "-y", "--no-install-recommends", ...missing),
        (output) => `apt could not install ${missing.join(", ")}:\n${complaints}${output}`,
      );
    });
  });
}

function missingSystemPackages() {
  const present = {
    bubblewrap: () => findProgram("bwrap"),
    "ca-certificates": () => existsSync("/etc/ssl/certs/ca-certificates.crt"),
    // The package must have the keys of the Debian release of the snapshot.
    "debian-archive-keyring": () =>
      ["gpg", "pgp", "asc"].some((ending) => existsSync(`/usr/share/keyrings/debian-archive-trixie-stable.${ending}`)),
    mmdebstrap: () => findProgram("mmdebstrap"),
    "python3-pip": () => ["python3", "/usr/bin/python3"].some(hasPip),
    ...(process.argv.includes("--dev") && presentForTests),
  };
  return Object.keys(present).filter((name) => !present[name]());
}

function hasPip(python) {
  const script = "import importlib.util, sys; sys.exit(importlib.util.find_spec('pip') is None)";
  return spawnSync(python, ["-c", script]).status === 0;
}

function installNpmPackages() {
  if (npmPackagesAreCurrent()) return;
  withLock("npm", () => {
    if (npmPackagesAreCurrent()) return;
    timed("npm packages", () => {
      // Do not run npm with the Node.js of the packages that it replaces.
      const PATH = process.env.PATH.split(":")
        .filter((directory) => !directory.includes("node_modules"))
        .join(":");
      // Installs exactly the versions of the lock file, like `npm ci`. But `npm ci` refuses a lock file without the native packages for other platforms.
      run(
        "npm",
        ["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"],
        { env: { ...process.env, PATH } },
        (output) => `npm install failed:\n${output}`,
      );
      linkNode();
    });
    if (!npmPackagesAreCurrent()) fail(`npm did not install Node.js 24 for ${process.platform}-${process.arch} in node_modules/.bin/node.`);
  });
}

/** The npm of Debian 13 (9.2) installs the package of Node.js 24, but does not link it. */
function linkNode() {
  const installed = path.join(root, "node_modules", `node-${process.platform}-${process.arch}`, "bin", "node");
  if (existsSync(node) || !existsSync(installed)) return;
  rmSync(node, { force: true }); // a broken link
  symlinkSync(path.relative(path.dirname(node), installed), node);
}

/** npm writes its hidden lock file last. If it matches ours, the installation is complete and up to date. */
function npmPackagesAreCurrent() {
  try {
    const packagesOf = (file) => JSON.parse(readFileSync(path.join(root, file), "utf8")).packages;
    const installed = packagesOf("node_modules/.package-lock.json");
    const wanted = Object.entries(packagesOf("package-lock.json")).filter(([name]) => name !== "");
    // Check the directories too: `npm install --package-lock-only` writes the hidden lock file but installs nothing.
    const isInstalled = ([name, { version }]) => installed[name]?.version === version && existsSync(path.join(root, name, "package.json"));
    if (!wanted.every((entry) => isInstalled(entry) || (entry[1].optional && !installed[entry[0]]))) return false;
  } catch {
    return false;
  }
  const { stdout } = spawnSync(node, ["--version"], { encoding: "utf8" });
  return stdout?.startsWith("v24.") ?? false;
}

/** Allows one set-up of this clone at a time. Ignores the lock of a process that no longer exists. */
function withLock(name, work) {
  const clone = createHash("sha256").update(root).digest("hex").slice(0, 16);
  const file = path.join(tmpdir(), `sluice-setup-${process.getuid()}-${name}-${clone}`);
  for (let reported = false; !takeLock(file); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 250)) {
    if (!reported) say(`… waiting for another set-up (${name})`);
    reported = true;
  }
  const release = () => rmSync(file, { force: true });
  process.once("exit", release);
  try {
    work();
  } finally {
    release();
    process.removeListener("exit", release);
  }
}

function takeLock(file) {
  try {
    writeFileSync(file, String(process.pid), { flag: "wx" });
    return true;
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
  }
  try {
    const owner = readFileSync(file, "utf8");
    const isNew = Date.now() - statSync(file).mtimeMs < 2000;
    if (owner ? !existsSync(`/proc/${owner}`) : !isNew) rmSync(file, { force: true });
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
  }
  return false;
}

function run(program, args, options, explain) {
  const { status, error, stdout, stderr } = spawnSync(program, args, { cwd: root, encoding: "utf8", maxBuffer: 2 ** 26, ...options });
  if (status === 0) return;
  const output = [error?.message, stderr, stdout].filter(Boolean).join("\n").trim().split("\n").slice(-30).join("\n");
  fail(explain(output), status ?? 1);
}

function timed(label, work) {
  const start = Date.now();
  say(`… ${label}`);
  work();
  say(`✓ ${label} · ${seconds(start)}`);
}

function findProgram(name) {
  const directories = [...(process.env.PATH ?? "").split(":"), "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
  return directories.filter(Boolean).find((directory) => {
    try {
      accessSync(path.join(directory, name), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

function seconds(start) {
  return `${((Date.now() - start) / 1000).toFixed(1)} s`;
}

function say(line) {
  process.stderr.write(`${line}\n`);
}

function fail(message, status = 1) {
  if (message) say(`set-up: ${message}`);
  process.exit(status);
}

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Runtime } from "../src/create-runtime.ts";
import { openAttackedCellSession, type AttackedCellSession } from "./escape/attacked-cell-session.ts";
import { openHostTraps, receivedPings, untouched, type HostTraps } from "./escape/host-traps.ts";
import { openTestRuntime, testedDrivers } from "./test-runtime.ts";

/**
 * Escape tests for the network; those for other subjects are in escape/. Where the host can observe an attack, the host's observation counts. After each
 * attack, the same cell session must continue with its earlier variables, or correctly report that they are lost.
 */
describe.each(testedDrivers)("%s", (driver) => {
  let traps: HostTraps;
  let runtime: Runtime;
  let cellSession: AttackedCellSession;

  beforeAll(async () => {
    traps = await openHostTraps();
    await traps.checkThatTrapsCount();
    runtime = openTestRuntime(driver);
    cellSession = await openAttackedCellSession(runtime, traps);
  }, 120_000);

  afterAll(async () => {
    await runtime?.close();
    await traps?.[Symbol.asyncDispose]();
  }, 30_000);

  it("python sandbox: networkPolicy deny-all blocks outbound HTTP", async () => {
    const hosts = [
      "127.0.0.1",
      "localhost",
      "0.0.0.0",
      ...traps.addresses.filter((address) => !address.includes(":")),
      "93.184.215.14",
      "example.com",
    ];
    await cellSession.expectAllRefused(
      `
import http.client, urllib.request
def with_urllib(host):
    return urllib.request.urlopen(f"http://{host}:${traps.httpPort}/", timeout=3).read()
def with_http_client(host):
    connection = http.client.HTTPConnection(host, ${traps.httpPort}, timeout=3)
    connection.request("GET", "/")
    return connection.getresponse().read()
def with_https(host):
    return urllib.request.urlopen(f"https://{host}/", timeout=3).read()
for host in ${JSON.stringify(hosts)}:
    attempt(f"urllib {host}", with_urllib, host)
    attempt(f"http.client {host}", with_http_client, host)
    attempt(f"https {host}", with_https, host)
attempt("pandas", pd.read_csv, "http://127.0.0.1:${traps.httpPort}/data.csv")
`,
      [...hosts.flatMap((host) => [`urllib ${host}`, `http.client ${host}`, `https ${host}`]), "pandas"],
    );
    expect(traps.reached()).toEqual(untouched);
    await cellSession.expectIntact();
  });

  it("no TCP connection and no UDP datagram reaches the host's loopback, its addresses or the internet, over IPv4 or IPv6", async () => {
    const addresses = [...new Set(["127.0.0.1", "0.0.0.0", "::1", "::ffff:127.0.0.1", ...traps.addresses, "192.0.2.1", "2001:db8::1"])];
    await cellSession.expectAllRefused(
      `
def tcp(address, port):
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM) as s:
        s.settimeout(3)
        s.connect((address, port))
def udp(address, port):
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(b"escaped", (address, port))
for address in ${JSON.stringify(addresses)}:
    six = address == "::1"
    attempt(f"tcp {address}", tcp, address, ${traps.tcp6Port ?? 9} if six else ${traps.tcp4Port})
    attempt(f"udp {address}", udp, address, ${traps.udp6Port ?? 9} if six else ${traps.udp4Port})
`,
      addresses.flatMap((address) => [`tcp ${address}`, `udp ${address}`]),
    );
    expect(traps.reached()).toEqual(untouched);
    await cellSession.expectIntact();
  });

  it("the metadata address of cloud providers is out of reach", async () => {
    await cellSession.expectAllRefused(
      `
import urllib.request
def metadata(url):
    return urllib.request.urlopen(urllib.request.Request(url, headers={"Metadata-Flavor": "Google"}), timeout=3).read()
attempt("169.254.169.254", metadata, "http://169.254.169.254/latest/meta-data/")
attempt("as a number", metadata, "http://2852039166/latest/meta-data/")
attempt("over IPv6", metadata, "http://[fd00:ec2::254]/latest/meta-data/")
attempt("by name", metadata, "http://metadata.google.internal/computeMetadata/v1/")
`,
      ["169.254.169.254", "as a number", "over IPv6", "by name"],
    );
    await cellSession.expectIntact();
  });

  it("no name can be resolved and no DNS query is sent", async () => {
    await cellSession.expectAllRefused(
      `
def query(server, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(3)
        s.sendto(b"\\x12\\x34\\x01\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x07example\\x03com\\x00\\x00\\x01\\x00\\x01", (server, port))
        return s.recv(512)
attempt("getaddrinfo", socket.getaddrinfo, "example.com", 80)
attempt("gethostbyname", socket.gethostbyname, "example.com")
attempt("gethostbyaddr", socket.gethostbyaddr, "8.8.8.8")
attempt("a resolver of the world", query, "8.8.8.8", 53)
attempt("systemd-resolved", query, "127.0.0.53", 53)
attempt("a resolver on the host", query, "127.0.0.1", ${traps.udp4Port})
`,
      ["getaddrinfo", "gethostbyname", "gethostbyaddr", "a resolver of the world", "systemd-resolved", "a resolver on the host"],
    );
    expect(traps.reached()).toEqual(untouched);
    await cellSession.expectIntact();
  });

  it("no ping leaves the sandbox through raw, packet or datagram sockets", async () => {
    const pings = await receivedPings();
    const targets = ["127.0.0.1", ...traps.addresses.filter((address) => !address.includes(":"))];
    await cellSession.expectAllRefused(
      `
ECHO = b"\\x08\\x00\\xf7\\xff\\x00\\x00\\x00\\x00"
def ping(kind, address):
    with socket.socket(socket.AF_INET, kind, socket.IPPROTO_ICMP) as s:
        s.sendto(ECHO, (address, 0))
for address in ${JSON.stringify(targets)}:
    attempt(f"raw {address}", ping, socket.SOCK_RAW, address)
    attempt(f"datagram {address}", ping, socket.SOCK_DGRAM, address)
attempt("raw IPv6", socket.socket, socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
attempt("packet", socket.socket, socket.AF_PACKET, socket.SOCK_RAW, 0x300)
`,
      [...targets.flatMap((address) => [`raw ${address}`, `datagram ${address}`]), "raw IPv6", "packet"],
    );
    expect(await receivedPings()).toBe(pings);
    await cellSession.expectIntact();
  });

  it("the host's unix sockets, by path and abstract, cannot be reached", async () => {
    await cellSession.expectAllRefused(
      `
def unix(address, kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_UNIX, kind) as s:
        s.connect(address)
def through_a_pair(address):
    a, b = socket.socketpair()
    with a, b:
        a.connect(address)
def datagram_from_a_pair(address):
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with a, b:
        a.sendto(b"escaped", address)
PATH, ABSTRACT = ${JSON.stringify(traps.unixPath)}, "\\0${traps.abstractName}"
attempt("path", unix, PATH)
attempt("abstract", unix, ABSTRACT)
attempt("abstract, sequenced packets", unix, ABSTRACT, socket.SOCK_SEQPACKET)
attempt("a socketpair's end connected again", through_a_pair, ABSTRACT)
attempt("a socketpair's end sent elsewhere, abstract", datagram_from_a_pair, ABSTRACT)
attempt("a socketpair's end sent elsewhere, path", datagram_from_a_pair, PATH)
attempt("the zygote's socket", unix, "/run/sluice/leases.sock")
attempt("D-Bus", unix, "/run/dbus/system_bus_socket")
attempt("Docker", unix, "/var/run/docker.sock")
attempt("binding a name", lambda: call("bind", 1, b"\\x01\\x00/tmp/own", 10))
`,
      [
        "path",
        "abstract",
        "abstract, sequenced packets",
        "a socketpair's end connected again",
        "a socketpair's end sent elsewhere, abstract",
        "a socketpair's end sent elsewhere, path",
        "the zygote's socket",
        "D-Bus",
        "Docker",
        "binding a name",
      ],
    );
    expect(traps.reached()).toEqual(untouched);
    await cellSession.expectIntact();
  });

  it("no socket of any kind can be created, by Python or by a raw system call, but socketpairs work", async () => {
    const families = { unix: 1, inet: 2, inet6: 10, netlink: 16, packet: 17, bluetooth: 31, alg: 38, vsock: 40, xdp: 44 };
    await cellSession.expectAllRefused(
      `
for name, family in ${JSON.stringify(families)}.items():
    attempt(name, call, "socket", family, 1, 0)
    attempt(f"{name} datagram", call, "socket", family, 2, 0)
attempt("inet socketpair", call, "socketpair", 2, 1, 0, ctypes.byref((ctypes.c_int * 2)()))
a, b = socket.socketpair()
a.send(b"still works")
assert b.recv(64) == b"still works"
import asyncio
async def two():
    return 2
assert asyncio.run(two()) == 2
`,
      [...Object.keys(families).flatMap((name) => [name, `${name} datagram`]), "inet socketpair"],
    );
    await cellSession.expectIntact();
  });

  it("import tricks find no network library, no package manager and no way to the network", async () => {
    await cellSession.expectAllRefused(
      `
import importlib, importlib.util, runpy, shutil, subprocess, zipfile
for name in ["requests", "urllib3", "httpx", "aiohttp", "yfinance", "pip", "ensurepip", "setuptools", "websocket", "paramiko", "pycurl"]:
    attempt(f"import {name}", importlib.import_module, name)
def run_module(name, *arguments):
    done = subprocess.run([sys.executable, "-m", name, *arguments], capture_output=True, text=True)
    if done.returncode != 0 and "No module named" in done.stderr:
        raise ImportError(done.stderr)
    return done
attempt("python -m pip", run_module, "pip", "install", "requests")
attempt("python -m ensurepip", run_module, "ensurepip")
for program in ["curl", "wget", "gcc", "cc", "apt", "apt-get", "dpkg", "nc", "ssh", "pip3"]:
    attempt(program, subprocess.run, [program, "--version"])
    assert shutil.which(program) is None

CONNECT = """
import socket, sys
def reach(port):
    with socket.socket() as s:
        s.settimeout(3)
        s.connect(("127.0.0.1", port))
    return "reached"
"""
with zipfile.ZipFile("/sandbox/smuggled.zip", "w") as archive:
    archive.writestr("from_zip/__init__.py", CONNECT)
sys.path.insert(0, "/sandbox/smuggled.zip")
attempt("a module imported from a zip", lambda: importlib.import_module("from_zip").reach(${traps.tcp4Port}))
os.makedirs("/tmp/path_entry", exist_ok=True)
with open("/tmp/path_entry/from_path.py", "w") as file:
    file.write(CONNECT)
sys.path.append("/tmp/path_entry")
attempt("a module on sys.path", lambda: importlib.import_module("from_path").reach(${traps.tcp4Port}))
attempt("a module run by path", lambda: runpy.run_path("/tmp/path_entry/from_path.py")["reach"](${traps.tcp4Port}))
def fresh_socket_module():
    sys.modules.pop("socket"), sys.modules.pop("_socket")
    try:
        return importlib.import_module("_socket").socket()
    finally:
        sys.modules["socket"] = socket
attempt("a freshly loaded _socket", fresh_socket_module)
def in_a_subprocess(*command):
    done = subprocess.run(command, capture_output=True, text=True, env={})
    if "PermissionError" in done.stderr or "Operation not permitted" in done.stderr:
        raise PermissionError(1, done.stderr)
    return done
CODE = CONNECT + "reach(${traps.tcp4Port})"
attempt("a subprocess", in_a_subprocess, sys.executable, "-c", CODE)
attempt("an isolated subprocess without site", in_a_subprocess, sys.executable, "-I", "-S", "-c", CODE)
attempt("a shell's own network", in_a_subprocess, "/bin/bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/${traps.tcp4Port}") if os.path.exists("/bin/bash") else None
def with_ctypes():
    fd = libc.socket(2, 1, 0)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "socket")
    return fd
attempt("ctypes", with_ctypes)
attempt("ctypes, a raw system call", call, "socket", 2, 1, 0)
attempts.pop("a shell's own network", None)
`,
      [
        ...["requests", "urllib3", "httpx", "aiohttp", "yfinance", "pip", "ensurepip", "setuptools", "websocket", "paramiko", "pycurl"].map(
          (name) => `import ${name}`,
        ),
        "python -m pip",
        "python -m ensurepip",
        ...["curl", "wget", "gcc", "cc", "apt", "apt-get", "dpkg", "nc", "ssh", "pip3"],
        "a module imported from a zip",
        "a module on sys.path",
        "a module run by path",
        "a freshly loaded _socket",
        "a subprocess",
        "an isolated subprocess without site",
        "ctypes",
        "ctypes, a raw system call",
      ],
    );
    expect(traps.reached()).toEqual(untouched);
    await cellSession.expectIntact();
  });
});

import { syscallNumbers } from "../../src/sandbox/seccomp/syscall-numbers.ts";

const numbers = process.arch === "arm64" ? syscallNumbers.aarch64 : syscallNumbers.x86_64;

/**
 * Python code that every attack starts with. `attempt` records the result of one try. It is "refused" only if the system refused it (an OSError with an
 * errno, or a missing module). Anything else, including a mistake in the attack itself, fails the test.
 */
export const attemptCode: string = `
import ctypes, errno, os, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
NUMBERS = ${JSON.stringify(numbers)}
attempts = {}

def attempt(name, function, *arguments):
    try:
        got = function(*arguments)
        attempts[name] = f"GOT THROUGH: {got!r:.200}"
    except ImportError as error:
        attempts[name] = f"refused: {error}"
    except socket.timeout:
        attempts[name] = "NOT REFUSED: timed out"
    except OSError as error:
        import urllib.error
        if isinstance(error, urllib.error.URLError) and isinstance(error.reason, OSError):
            error = error.reason
        known = error.errno in errno.errorcode or isinstance(error, socket.gaierror)
        attempts[name] = f"refused: {errno.errorcode.get(error.errno, error)}" if known else f"NOT REFUSED: {error!r}"
    except BaseException as error:
        attempts[name] = f"BROKEN: {error!r}"

def call(name, *arguments):
    """A raw system call that bypasses all wrappers of libc and Python."""
    words = [ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_void_p(a) if a is None else a if isinstance(a, ctypes._SimpleCData) else ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    got = libc.syscall(ctypes.c_long(NUMBERS[name]), *words)
    if got == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return got

def write_to(path, data=b"escaped"):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)

def read_from(path):
    with open(path, "rb") as file:
        return file.read(4096)
`;

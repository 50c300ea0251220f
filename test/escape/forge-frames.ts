/** Python code that finds the cell process's socket to the monitor and sends frames over it. */
export const forgeFrames: string = `
import json, os, socket, stat, struct
def own_socket():
    for name in os.listdir("/proc/self/fd"):
        try:
            if int(name) > 2 and stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                return int(name)
        except OSError:
            pass
    raise RuntimeError("there is no socket to misuse")
def frame(header, body=b""):
    head = json.dumps(header).encode()
    return struct.pack(">III", 0x534C5501, len(head), len(body)) + head + body
def current_cell():
    import sys
    at = sys._getframe()
    while at is not None:
        if "header" in at.f_locals and "cell" in at.f_locals["header"]:
            return at.f_locals["header"]["cell"]
        at = at.f_back
    raise RuntimeError("no cell is running")
def send(data):
    socket.socket(fileno=os.dup(own_socket())).sendall(data)
`;

/**
 * Python that writes frames of its own on the channel of the worker, which user code can always reach. `send(header, body)` sends one, and
 * counts artifacts among those that the call has to emit.
 */
export const forgingPrelude = `
import gc, json, struct, sys
channel = next(one for one in gc.get_objects() if type(one).__name__ == "Connection").sock
frame = sys._getframe()
while not (frame.f_code.co_name == "run" and "number" in frame.f_locals):
    frame = frame.f_back
def send(header, body=b""):
    if header["type"] == "artifact":
        frame.f_locals["kinds"].add(header["kind"])
    head = json.dumps({"cell": frame.f_locals["number"], **header}).encode()
    channel.sendall(struct.pack(">III", 0x534C5501, len(head), len(body)) + head + body)
`;

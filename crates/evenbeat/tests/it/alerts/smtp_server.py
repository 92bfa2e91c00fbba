"""A mail server that writes each message it accepts to its standard output, as one line of JSON.

It prints its port first. Mail is accepted only from those who log in as `beat` with the password `hunter2`. Whether it
accepts mail at all, a file decides: while FILE exists, it answers 451.
"""

import asyncio
import json
import os
import sys

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword


class Handler:
    async def handle_DATA(self, server, session, envelope):
        if os.path.exists(sys.argv[1]):
            return "451 try again later"
        text = envelope.content.decode("utf-8", "surrogateescape")
        line = json.dumps({"from": envelope.mail_from, "to": envelope.rcpt_tos, "text": text})
        print(line, flush=True)
        return "250 OK: queued"


def authenticator(server, session, envelope, mechanism, auth_data):
    is_known = isinstance(auth_data, LoginPassword) and auth_data == LoginPassword(b"beat", b"hunter2")
    return AuthResult(success=is_known)


async def main():
    loop = asyncio.get_running_loop()
    handler = Handler()
    server = await loop.create_server(
        lambda: SMTP(
            handler,
            authenticator=authenticator,
            auth_required=True,
            auth_require_tls=False,
            enable_SMTPUTF8=True,
            loop=loop,
        ),
        "127.0.0.1",
        0,
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())

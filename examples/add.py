"""python3 add.py QUANTITY: adds to the stock under RESOURCE, with the token in FENCING_TOKEN."""

import json
import os
import sys
import urllib.error
import urllib.request

URL = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8080") + "/v1/resources/" + os.environ["RESOURCE"]
HEADERS = {
    "Authorization": "Bearer " + os.environ.get("GATEWAY_KEY", "palisade-on-this-machine-only"),
    "Fencing-Token": os.environ["FENCING_TOKEN"],
    "Content-Type": "application/json",
}


def send(method, path="", document=None):
    body = None if document is None else json.dumps(document).encode()
    request = urllib.request.Request(URL + path, data=body, headers=HEADERS, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


try:
    # The seal comes before the read: from here on no older holder can change the document.
    stock = send("POST", "/seal")["value"] or {"quantity": 0}
    stock["quantity"] += int(sys.argv[1])
    print("stored as revision", send("PUT", document=stock)["rev"])
except urllib.error.HTTPError as error:
    sys.exit(f"{error.code} {json.load(error)['code']}")

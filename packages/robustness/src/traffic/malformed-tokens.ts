// Header fields that carry no fencing token, however much some of them look like one. None may change anything (G2).

/** Names and values as they go over the wire, so that a field can come twice or be empty. `near` is a valid token. */
export function malformedTokens(near: number): readonly (readonly string[])[] {
  const values = [
    "",
    "0",
    `-${near}`,
    `+${near}`,
    `0${near}`,
    `${near}.0`,
    `${near}e0`,
    `0x${near.toString(16)}`,
    `${near}, ${near + 1}`,
    `${near};`,
    `${near};seq=`,
    `${near};seq=0`,
    `${near};seq=01`,
    `${near};SEQ=1`,
    `${near}; seq=1`,
    `${near};seq=1;seq=2`,
    `"${near}"`,
    `${near}n`,
    `${near} ${near}`,
    "1000000000000000",
    "9007199254740993",
    "999999999999999999999999",
    "NaN",
    "null",
    "true",
    "\u00b2",
  ];
  const twice = ["Fencing-Token", String(near), "Fencing-Token", String(near)];
  const otherName = ["Fencing_Token", String(near)];
  return [[], twice, otherName, ["X-Fencing-Token", String(near)], ...values.map((value) => ["Fencing-Token", value])];
}

// A peer and a key in a hostile backup, for the tests of restores.

export const grants = [
  {
    kind: "peers",
    line: "mallory at wss://mallory.example",
    insert: `insert into peers (name, url, exposes_json, offers_json, created_at)
      values ('mallory', 'wss://mallory.example', '[]', '[]', 1);`,
  },
  {
    kind: "keys",
    line: "cards",
    insert: "insert into gateway_keys (name, key_json, created_at) values ('cards', '{}', 1);",
  },
];

// A paired device in a hostile backup, for the tests of restores.

export const grants = [
  {
    kind: "nodes",
    line: "camera (linux, key AAAA)",
    insert: `insert into nodes
  (id, name, platform, version, public_key, caps_json, commands_json, paired_at)
  values ('n1', 'camera', 'linux', '1', 'AAAA', '[]', '[]', 1);`,
  },
];

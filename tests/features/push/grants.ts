// A device in a hostile backup, for the tests of restores.

export const grants = [
  {
    kind: "push",
    line: "phone",
    insert: `insert into push_devices (id, name, endpoint, p256dh, auth, created_at, created_by)
      values ('d', 'phone', 'https://push.mallory.example/1', 'p', 'a', 1, 'x');`,
  },
];

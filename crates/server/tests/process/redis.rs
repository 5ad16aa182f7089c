//! The users of Redis that `docs/operations/redis.md` describes.

use crate::prelude::*;

#[test]
fn the_documented_users_of_redis_are_enough_and_survive_its_restart() {
    let documentation = include_str!("../../../../docs/operations/redis.md");
    let lines = documentation.lines();
    let lines = lines.skip_while(|line| !line.contains("umask"));
    let lines = lines.take_while(|line| !line.is_empty());
    let lines = lines.map(|line| &line[4..]);
    let recipe: Vec<_> = lines.filter(|line| !line.starts_with("chown")).collect();
    let folder = new_folder();
    paste(&recipe.join("\n").replace("/etc/redis/", ""), folder.path());

    let users = folder.path().join("users.acl");
    let options = format!("--requirepass ignored --aclfile {}", users.display());
    let mut server = RedisServer::with(&options);
    let port = server.port();
    let url = |user: &str| format!("redis://{user}@localhost:{port}");
    let program = || {
        let program = Program::with_redis(&url("animal-store:PASSWORD"));
        program.set(
            "keys.redis.admin_url",
            &url("animal-store-keys:KEYS_PASSWORD"),
        )
    };
    for _ in 0..2 {
        let keys = |line: &str| program().args("keys").args(line).succeed();
        let old = NewKey::printed(&keys("create --label shop --expires-in 90d"));
        let rotate = format!("rotate {} --grace 0s", old.id);
        let new = NewKey::printed(&keys(&rotate));
        let mut running = program().start();
        let address = running.address();
        // On a busy machine, the short timeout of Redis can pass.
        wait_until(|| status(address, &new.token) == 200);
        wait_until(|| status(address, &old.token) == 401);
        running.terminate().assert_success();
        keys("list --json").assert_has(r#""last_used": "20"#);
        keys(&format!("revoke {}", old.id));
        let login = "--user default --pass ADMIN_PASSWORD --no-auth-warning";
        assert_eq!(server.run(&format!("{login} ACL LOAD")), "OK");
        server.stop();
        server.start_again();
    }
}

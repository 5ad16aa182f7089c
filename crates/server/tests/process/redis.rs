//! The users of Redis that `docs/operations/redis.md` describes.

use animal_store_test_servers::RedisServer;
use tempfile::TempDir;

use crate::{
    keys::NewKey,
    pets::status,
    program::{Program, paste},
};

#[test]
fn the_documented_users_of_redis_are_enough_and_survive_its_restart() {
    let documentation = include_str!("../../../../docs/operations/redis.md");
    let lines = documentation.lines();
    let lines = lines.skip_while(|line| !line.contains("umask"));
    let lines = lines.take_while(|line| !line.is_empty());
    let lines = lines.map(|line| &line[4..]);
    let recipe: Vec<_> = lines.filter(|line| !line.starts_with("chown")).collect();
    let folder = TempDir::new().expect("a folder");
    paste(&recipe.join("\n").replace("/etc/redis/", ""), folder.path());

    let users = folder.path().join("users.acl");
    let users = users.to_str().expect("UTF-8");
    let mut server = RedisServer::with(&["--requirepass", "ignored", "--aclfile", users]);
    let port = server.port();
    let program = |user: &str| Program::with_redis_url(&format!("redis://{user}@localhost:{port}"));
    for _ in 0..2 {
        let keys = |line: &str| {
            let program = program("animal-store-keys:KEYS_PASSWORD").args("keys");
            program.args(line).succeed()
        };
        let old = NewKey::printed(&keys("create --label shop --expires-in 90d"));
        let rotate = format!("rotate {} --grace 0s", old.id);
        let new = NewKey::printed(&keys(&rotate));
        let mut running = program("animal-store:PASSWORD").start();
        let address = running.address();
        assert_eq!(status(address, &new.token), 200);
        assert_eq!(status(address, &old.token), 401);
        running.terminate().assert_success();
        keys("list --json").assert_has(r#""last_used": "20"#);
        keys(&format!("revoke {}", old.id));
        let login = "--user default --pass ADMIN_PASSWORD --no-auth-warning ACL LOAD";
        let load: Vec<_> = login.split(' ').collect();
        assert_eq!(server.command(&load), "OK");
        server.stop();
        server.start_again();
    }
}

//! The users of Redis that `docs/operations/redis.md` describes.

use animal_store_test_servers::RedisServer;
use tempfile::TempDir;

use crate::{
    keys::token_and_id,
    pets::status,
    program::{Program, paste},
};

#[test]
fn the_documented_users_of_redis_are_enough_and_survive_its_restart() {
    let documentation = include_str!("../../../../docs/operations/redis.md");
    let recipe = documentation
        .lines()
        .skip_while(|line| !line.contains("umask"))
        .take_while(|line| !line.is_empty());
    let recipe: Vec<_> = recipe
        .map(|line| &line[4..])
        .filter(|line| !line.starts_with("chown"))
        .collect();
    let folder = TempDir::new().unwrap();
    paste(&recipe.join("\n").replace("/etc/redis/", ""), folder.path());

    let file = folder.path().join("users.acl");
    let mut server = RedisServer::with(&[
        "--requirepass",
        "ignored",
        "--aclfile",
        file.to_str().expect("UTF-8"),
    ]);
    for _ in 0..2 {
        let url = |user: &str| format!("redis://{user}@localhost:{}", server.port());
        let keys = |args: &[&str]| {
            Program::with_redis_url(&url("animal-store-keys:KEYS_PASSWORD"))
                .args(&["keys"])
                .args(args)
                .run()
        };
        let (old, id) = token_and_id(&keys(&["create", "--label", "shop", "--expires-in", "90d"]));
        let (token, _) = token_and_id(&keys(&["rotate", &id, "--grace", "0s"]));
        let mut running = Program::with_redis_url(&url("animal-store:PASSWORD")).start();
        assert_eq!(
            [&token, &old].map(|token| status(running.address(), token)),
            [200, 401]
        );
        running.terminate().assert_success();
        assert!(
            keys(&["list", "--json"])
                .output()
                .contains(r#""last_used": "20"#)
        );
        assert_eq!(keys(&["revoke", &id]).code, Some(0));
        let administrator = [
            "--user",
            "default",
            "--pass",
            "ADMIN_PASSWORD",
            "--no-auth-warning",
            "ACL",
            "LOAD",
        ];
        assert_eq!(server.command(&administrator), "OK");
        server.stop();
        server.start_again();
    }
}

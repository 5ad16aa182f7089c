//! `animal-store copy`: interrupted at random and repeated.

use crate::{
    copy_storage::copy,
    program::Line,
    store::{Store, odd_pets, pause},
};

const MEMORY: &str = "backend = \"memory\"";
const PETS: usize = 20_000;

#[test]
fn a_copy_that_is_interrupted_ten_times_and_repeated_is_complete() {
    let [sqlite, postgres] = Store::each();
    sqlite.import(&odd_pets(PETS), &["--keep-ids"]);
    let back = Store::sqlite();
    for (from, to) in [(&sqlite, &postgres), (&postgres, &back)] {
        for time in 0..10 {
            let mut running = copy((from, MEMORY), (to, MEMORY)).start();
            pause(time * time * 10);
            if time % 2 == 0 {
                running.kill();
            } else {
                running.signal("INT");
            }
            drop(running);
        }
        let exited = copy((from, MEMORY), (to, MEMORY)).run();
        assert_eq!(exited.code, Some(0), "{exited:?}");
    }
    let pages = sqlite.pages();
    assert_eq!(postgres.pages(), pages);
    assert_eq!(back.pages(), pages);
}

#[test]
fn a_signal_ends_a_copy_after_the_batch_and_says_how_to_go_on() {
    let [from, to] = Store::each();
    from.import(&odd_pets(PETS), &[]);
    let mut running = copy((&from, MEMORY), (&to, MEMORY)).start();
    to.wait_for_pet();
    running.signal("INT");
    running.wait_for(|line| matches!(line, Line::Err(text) if text.contains("interrupted")).then_some(()));
    let exited = running.wait();

    assert_eq!(exited.code, Some(1), "{exited:?}");
    assert!(exited.stderr.last().expect("an error").contains("copy --from from.toml --to to.toml"), "{exited:?}");
    assert_eq!(copy((&from, MEMORY), (&to, MEMORY)).run().code, Some(0));
    assert_eq!(to.pages(), from.pages());
}

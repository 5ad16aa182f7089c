use std::{
    env,
    hash::{BuildHasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time,
};

use shuttle::{
    Config, MaxSteps, Runner,
    rand::{Rng, thread_rng},
    scheduler::{PctScheduler, RandomScheduler, ReplayScheduler, Scheduler},
    sync::atomic::AtomicBool,
};

/// Number of preemptions that the scheduler PCT places in a schedule.
const DEPTH: usize = 3;

/// Runs a test under as many schedules as the variable `SCHEDULES` says (1000): half of them are random, the others
/// have few preemptions (PCT). Panics at the first one that fails, and prints it. `SCHEDULES_SEED` repeats a run, and
/// `SCHEDULE` replays the schedule that was printed.
///
/// # Panics
/// If the test panics, if all of its tasks wait, or if it does not end.
#[expect(clippy::print_stdout, reason = "the script shows the figures")]
pub fn check(subject: &str, test: impl Fn() + Send + Sync + 'static) {
    let test = Arc::new(test);
    if let Ok(schedule) = env::var("SCHEDULE") {
        run(
            ReplayScheduler::new_from_encoded(schedule.trim()),
            &test,
            &Arc::default(),
        );
        return;
    }
    let number = |name| {
        env::var(name)
            .ok()
            .map(|text| text.parse().expect("a number"))
    };
    let schedules = number("SCHEDULES").unwrap_or(1000);
    let seed = number("SCHEDULES_SEED").unwrap_or_else(|| RandomState::new().hash_one(()) >> 32);
    println!("{subject}: seed {seed}");
    let start = time::Instant::now();
    let count = Arc::new(AtomicUsize::new(0));
    let random = usize::try_from(schedules / 2).expect("a number of schedules");
    run(RandomScheduler::new_from_seed(seed, random), &test, &count);
    run(
        PctScheduler::new_from_seed(seed, DEPTH, random),
        &test,
        &count,
    );
    println!(
        "{subject}: {} schedules in {:.1} s",
        count.load(Ordering::Relaxed),
        start.elapsed().as_secs_f64()
    );
}

fn run(
    scheduler: impl Scheduler + 'static,
    test: &Arc<impl Fn() + Send + Sync + 'static>,
    count: &Arc<AtomicUsize>,
) {
    let mut config = Config::new();
    config.stack_size = 256 * 1024;
    config.max_steps = MaxSteps::FailAfter(20_000);
    config.silence_warnings = true;
    let started = Started(Arc::clone(count));
    let test = Arc::clone(test);
    let count = Arc::clone(count);
    Runner::new(scheduler, config).run(move || {
        count.fetch_add(1, Ordering::Relaxed);
        test();
    });
    drop(started);
}

/// Prints the number of schedules when one fails.
struct Started(Arc<AtomicUsize>);

impl Drop for Started {
    #[expect(clippy::print_stdout, reason = "the script shows the figures")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("schedule {} failed", self.0.load(Ordering::Relaxed));
        }
    }
}

/// Lets the scheduler select another task.
pub fn scheduling_point() {
    AtomicBool::new(false).load(Ordering::SeqCst);
}

/// Returns `true` once in this number of calls, at random.
pub fn chance(one_in: u32) -> bool {
    thread_rng().gen_ratio(1, one_in)
}

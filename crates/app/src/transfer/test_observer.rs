use std::ops::ControlFlow;

use super::{ImportObserver, TransferObserver, TransferPass};

/// Records what it observes, and stops the transfer in a pass after a number of pets.
#[derive(Debug, Default)]
pub(crate) struct TestObserver {
    pub(crate) passes: Vec<(TransferPass, Option<u64>)>,
    pub(crate) advanced: Vec<u64>,
    pub(crate) refused: Vec<(u64, String)>,
    pub(crate) stop: Option<(TransferPass, u64)>,
}

impl TestObserver {
    pub(crate) fn stopping(pass: TransferPass, pets: u64) -> Self {
        Self { stop: Some((pass, pets)), ..Self::default() }
    }
}

impl TransferObserver for TestObserver {
    fn started(&mut self, pass: TransferPass, pets: Option<u64>) {
        self.passes.push((pass, pets));
    }

    fn advanced(&mut self, pets: u64) -> ControlFlow<()> {
        self.advanced.push(pets);
        let pass = self.passes.last().map(|(pass, _)| *pass);
        match self.stop {
            Some((in_pass, after)) if Some(in_pass) == pass && pets >= after => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

impl ImportObserver for TestObserver {
    fn refused(&mut self, line: u64, reason: &str) {
        self.refused.push((line, reason.to_owned()));
    }
}

use std::fmt;

/// Problems of a request, in text for the client: one entry per member, parameter or header.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<String>);

impl Problems {
    pub(crate) fn one(problem: impl Into<String>) -> Self {
        Self(vec![problem.into()])
    }

    pub(crate) fn push(&mut self, name: &str, problem: &str) {
        self.0.push(format!("{name} {problem}"));
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.join("; "))
    }
}

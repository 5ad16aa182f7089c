use crate::ports::UNFINISHED_COPY;

/// A result of `animal-store doctor` about one subject. It contains no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Stable name of the subject, such as `postgres.fsync`.
    pub subject: &'static str,
    /// The verdict about it.
    pub verdict: Verdict,
    /// The state that was found.
    pub found: String,
    /// What an operator can do about it. `None` if the verdict is [`Verdict::Ok`].
    pub advice: Option<String>,
}

/// A verdict, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// It could not be examined.
    Unknown,
    /// It works, and can lead to a failure or to a loss.
    Warning,
    /// The service fails, or loses data in a crash.
    Error,
}

impl Verdict {
    /// Returns the name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unknown => "unknown",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl Finding {
    /// Creates a finding that needs no advice.
    pub fn ok(subject: &'static str, found: impl Into<String>) -> Self {
        Self {
            subject,
            verdict: Verdict::Ok,
            found: found.into(),
            advice: None,
        }
    }

    fn with_advice(
        verdict: Verdict,
        subject: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            subject,
            verdict,
            found: found.into(),
            advice: Some(advice.into()),
        }
    }

    /// Creates a finding about a subject that could not be examined.
    pub fn unknown(
        subject: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self::with_advice(Verdict::Unknown, subject, found, advice)
    }

    /// Creates a finding about a subject that works and can lead to a failure or to a loss.
    pub fn warning(
        subject: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self::with_advice(Verdict::Warning, subject, found, advice)
    }

    /// Creates the finding about the mark of [`mark_copy`](crate::ports::BulkStorage::mark_copy).
    pub fn copy(subject: &'static str, is_unfinished: bool) -> Self {
        if is_unfinished {
            Self::warning(
                subject,
                UNFINISHED_COPY,
                "wait for the copy, or run the same `animal-store copy` again",
            )
        } else {
            Self::ok(subject, "every copy into this store was completed")
        }
    }

    /// Creates a finding about a subject with which the service fails, or loses data in a crash.
    pub fn error(
        subject: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self::with_advice(Verdict::Error, subject, found, advice)
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict::{Error, Ok, Unknown, Warning};

    #[test]
    fn verdicts_have_names_and_the_last_one_is_the_worst() {
        let verdicts = [Ok, Unknown, Warning, Error];
        assert!(verdicts.is_sorted());
        let names = verdicts.map(super::Verdict::as_str);
        assert_eq!(names, ["ok", "unknown", "warning", "error"]);
    }
}

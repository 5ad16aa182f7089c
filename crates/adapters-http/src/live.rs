//! The running counterparts of the settings that SIGHUP reloads. A reload applies to requests that begin after it.

use std::sync::Arc;

use crate::{
    origins::AllowedOrigins,
    rate_limits::{AuthFailureLimiter, KeyRateLimiter},
    settings::ApiSettings,
};

/// What runs by settings that can be reloaded.
#[derive(Debug, Default)]
pub(crate) struct Live {
    pub(crate) rate_limit: Option<Arc<KeyRateLimiter>>,
    pub(crate) auth_failures: Option<Arc<AuthFailureLimiter>>,
    pub(crate) origins: Option<AllowedOrigins>,
    pub(crate) errors_only: bool,
}

impl Live {
    /// Returns what runs by these settings. A limiter whose limit is the same is kept, with its state.
    pub(crate) fn replaced_by(&self, settings: &ApiSettings) -> Self {
        let rate_limit = settings.rate_limit.map(|limit| {
            let kept = self.rate_limit.clone();
            kept.filter(|limiter| limiter.limit == limit)
                .unwrap_or_else(|| Arc::new(KeyRateLimiter::new(limit)))
        });
        let auth_failures = settings.auth_failures.map(|limit| {
            let kept = self.auth_failures.clone();
            kept.filter(|limiter| limiter.per_minute == limit)
                .unwrap_or_else(|| Arc::new(AuthFailureLimiter::new(limit)))
        });
        Self {
            rate_limit,
            auth_failures,
            origins: settings.origins.clone(),
            errors_only: settings.errors_only,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::rate_limits::RateLimit;

    fn settings(burst: u32, failures: u32) -> ApiSettings {
        ApiSettings {
            rate_limit: NonZeroU32::new(burst).map(|burst| RateLimit {
                per_second: NonZeroU32::MIN,
                burst,
            }),
            auth_failures: NonZeroU32::new(failures),
            ..ApiSettings::default()
        }
    }

    #[test]
    fn a_limiter_is_kept_if_its_limit_is_the_same() {
        let live = Live::default().replaced_by(&settings(1, 1));
        for (burst, failures) in [(1, 1), (1, 2), (2, 1), (0, 0)] {
            let next = live.replaced_by(&settings(burst, failures));
            assert_eq!(next.rate_limit.is_some(), burst > 0);
            assert_eq!(next.auth_failures.is_some(), failures > 0);
            let [rate, rate_before] =
                [&next, &live].map(|live| live.rate_limit.as_ref().map(Arc::as_ptr));
            assert_eq!(rate == rate_before, burst == 1);
            let [failed, failed_before] =
                [&next, &live].map(|live| live.auth_failures.as_ref().map(Arc::as_ptr));
            assert_eq!(failed == failed_before, failures == 1);
        }
    }
}

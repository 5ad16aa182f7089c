//! `/metrics` of the management listener, which needs no API key.

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{ACCEPT, CONTENT_TYPE},
    web::Data,
};
use prometheus_client::{encoding::text::encode, registry::Registry};

use crate::error::ApiError;

/// 200 with every metric of the registry.
pub(crate) async fn metrics(registry: Data<Registry>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let mut text = String::new();
    encode(&mut text, &registry).map_err(|error| ApiError::Internal(error.into()))?;
    let mut accepted = request.headers().get_all(ACCEPT).filter_map(|value| value.to_str().ok());
    let mut response = HttpResponse::Ok();
    Ok(if accepted.any(|value| value.contains("application/openmetrics-text")) {
        response.insert_header((CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")).body(text)
    } else {
        let text = prometheus_text(&text);
        response.insert_header((CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")).body(text)
    })
}

/// Converts the format of the library, `OpenMetrics`, to the text format of Prometheus. There, the name of a
/// counter has its suffix in the comments as well, and there are no units and no end.
fn prometheus_text(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len() + open_metrics.len() / 16);
    let mut lines = open_metrics.lines().peekable();
    while let Some(line) = lines.next() {
        if line == "# EOF" || line.starts_with("# UNIT ") {
            continue;
        }
        // `# TYPE` follows `# HELP`.
        let declaration = if line.starts_with("# HELP ") { lines.peek().copied() } else { Some(line) };
        let counter = declaration.and_then(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter"));
        let (start, rest) = line.split_at(counter.map_or(line.len(), |name| "# TYPE ".len() + name.len()));
        let suffix = if counter.is_some() { "_total" } else { "" };
        text.extend([start, suffix, rest, "\n"]);
    }
    text
}

#[cfg(test)]
mod tests {
    use prometheus_client::{
        metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
        registry::Unit,
    };

    use super::*;

    #[test]
    fn open_metrics_are_converted_to_the_text_format_of_prometheus() {
        let mut registry = Registry::with_prefix("a");
        let family = Family::<[(&str, &str); 1], Counter>::default();
        family.get_or_create(&[("kind", "# TYPE x counter")]).inc();
        registry.register("things", "Things, in total", family);
        registry.register("depth", "# EOF", Gauge::<i64>::default());
        registry.register_with_unit("age", "Age", Unit::Seconds, Histogram::new([1.0]));
        let mut text = String::new();
        encode(&mut text, &registry).expect("metrics");

        let expected = "\
# HELP a_things_total Things, in total.
# TYPE a_things_total counter
a_things_total{kind=\"# TYPE x counter\"} 1
# HELP a_depth # EOF.
# TYPE a_depth gauge
a_depth 0
# HELP a_age_seconds Age.
# TYPE a_age_seconds histogram
a_age_seconds_sum 0.0
a_age_seconds_count 0
a_age_seconds_bucket{le=\"1.0\"} 0
a_age_seconds_bucket{le=\"+Inf\"} 0
";
        assert_eq!(prometheus_text(&text), expected);
    }
}

//! The header `traceparent` (W3C Trace Context): the span of the client that a request belongs to.
//!
//! The propagator of OpenTelemetry accepts ids of any length, so the header is parsed here. `tracestate` is ignored: it
//! is free text of a client.

use actix_web::http::header::{HeaderMap, HeaderName};
use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Returns the span of the client. `None` if the header is missing, malformed or given twice.
pub(super) fn parse(headers: &HeaderMap) -> Option<SpanContext> {
    let mut values = headers.get_all(TRACEPARENT);
    let value = values.next()?.to_str().ok()?;
    if values.next().is_some() {
        return None;
    }
    let mut fields = value.splitn(5, '-');
    let mut hex = |digits| fields.next().filter(|field| field.len() == digits && field.bytes().all(is_hex));
    let version = hex(2).filter(|version| *version != "ff")?;
    let trace = TraceId::from_hex(hex(32)?).ok()?;
    let span = SpanId::from_hex(hex(16)?).ok()?;
    let flags = TraceFlags::new(u8::from_str_radix(hex(2)?, 16).ok()?) & TraceFlags::SAMPLED;
    // A later version may have more fields.
    let complete = version != "00" || fields.next().is_none();
    let context = SpanContext::new(trace, span, flags, true, TraceState::NONE);
    (complete && context.is_valid()).then_some(context)
}

const fn is_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    fn parsed(values: &[&str]) -> Option<(String, String, bool)> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(TRACEPARENT, HeaderValue::from_str(value).unwrap());
        }
        let context = parse(&headers)?;
        Some((context.trace_id().to_string(), context.span_id().to_string(), context.is_sampled()))
    }

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const SPAN: &str = "00f067aa0ba902b7";

    #[test]
    fn a_valid_header_names_the_span_of_the_client() {
        for (version, flags, rest, sampled) in [
            ("00", "01", "", true),
            ("00", "00", "", false),
            ("00", "03", "", true),
            ("00", "fe", "", false),
            ("cc", "01", "", true),
            ("cc", "01", "-later-fields", true),
        ] {
            let header = format!("{version}-{TRACE}-{SPAN}-{flags}{rest}");
            assert_eq!(parsed(&[&header]), Some((TRACE.to_owned(), SPAN.to_owned(), sampled)), "{header}");
        }
    }

    #[test]
    fn a_malformed_header_is_ignored() {
        assert_eq!(parsed(&[]), None);
        let valid = format!("00-{TRACE}-{SPAN}-01");
        assert_eq!(parsed(&[&valid, &valid]), None);
        let zeros = "0".repeat(32);
        for header in [
            String::new(),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("0-{TRACE}-{SPAN}-01"),
            format!("00-{}-{SPAN}-01", &TRACE[1..]),
            format!("00-0{TRACE}-{SPAN}-01"),
            format!("00-+{}-{SPAN}-01", &TRACE[1..]),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("00-{zeros}-{SPAN}-01"),
            format!("00-{TRACE}-{}-01", &zeros[16..]),
            format!("00-{TRACE}-{}-01", &SPAN[1..]),
            format!("00-{TRACE}-{SPAN}-1"),
            format!("00-{TRACE}-{SPAN}-0g"),
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{TRACE}-{SPAN}-01-"),
            format!("cc-{TRACE}-{SPAN}-01.later"),
        ] {
            assert_eq!(parsed(&[&header]), None, "{header}");
        }
    }
}

use std::{
    fmt::{self, Debug, Write as _},
    time::{SystemTime, UNIX_EPOCH},
};

use humantime::format_rfc3339_micros;
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    registry::LookupSpan,
};

/// Prefix of the fields in which `tracing-log` keeps target and source file of a record of the crate `log`. They are
/// left out: the file is a path of the machine that built the program.
const RECORD_PREFIX: &str = "log.";

/// Capacity in bytes for a line: more than the line of a request usually has.
const CAPACITY: usize = 512;

/// Formats an event as one line of JSON: timestamp, level, fields, target. The format of `tracing-subscriber` costs a
/// refused request about a tenth of its CPU time (ADR 0009).
pub(super) struct JsonLine;

impl<S, N> FormatEvent<S, N> for JsonLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut members = Members {
            line: String::with_capacity(CAPACITY),
            record_target: None,
        };
        let now = format_rfc3339_micros(SystemTime::now().max(UNIX_EPOCH));
        write!(members.line, r#"{{"timestamp":"{now}""#)?;
        members.add_text("level", event.metadata().level().as_str());
        event.record(&mut members);
        let record_target = members.record_target.take();
        members.add_text(
            "target",
            record_target
                .as_deref()
                .unwrap_or(event.metadata().target()),
        );
        members.line.push_str("}\n");
        writer.write_str(&members.line)
    }
}

/// Writes the members of a JSON object.
struct Members {
    line: String,
    record_target: Option<String>,
}

impl Members {
    fn add_text(&mut self, name: &str, text: &str) {
        self.add(name, |line| {
            if is_plain(text) {
                line.extend(["\"", text, "\""]);
            } else {
                // A text can always be written.
                line.push_str(&serde_json::to_string(text).unwrap_or_default());
            }
        });
    }

    fn add_number(&mut self, name: &str, number: impl itoa::Integer) {
        self.add(name, |line| {
            line.push_str(itoa::Buffer::new().format(number));
        });
    }

    fn add(&mut self, name: &str, write_value: impl FnOnce(&mut String)) {
        if !name.starts_with(RECORD_PREFIX) {
            self.line.extend([",\"", name, "\":"]);
            write_value(&mut self.line);
        }
    }
}

/// Whether JSON escapes no character of a text. The compiler examines the bytes of a chunk at once.
fn is_plain(text: &str) -> bool {
    let (chunks, rest) = text.as_bytes().as_chunks::<8>();
    !chunks.iter().any(|chunk| has_escaped(chunk)) && !has_escaped(rest)
}

/// Without a branch for each byte.
fn has_escaped(bytes: &[u8]) -> bool {
    let escaped = bytes.iter().fold(0, |found, &byte| {
        found | u8::from(byte < b' ') | u8::from(byte == b'"') | u8::from(byte == b'\\')
    });
    escaped != 0
}

impl Visit for Members {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "log.target" {
            self.record_target = Some(value.to_owned());
        }
        self.add_text(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add_number(field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add_number(field.name(), value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        let text = if value { "true" } else { "false" };
        self.add(field.name(), |line| line.push_str(text));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = String::new();
        // A value that cannot be formatted is cut off.
        write!(text, "{value:?}").unwrap_or_default();
        self.add_text(field.name(), &text);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use proptest::prelude::*;
    use serde_json::{Value, json};
    use tracing_subscriber::{fmt::MakeWriter, layer::SubscriberExt};

    use super::*;

    /// Runs `log` and returns the one line that it writes.
    fn line_of(log: impl FnOnce()) -> Value {
        // A subscriber may outlive its thread.
        let lines: &Mutex<Vec<u8>> = Box::leak(Box::default());
        let layer = tracing_subscriber::fmt::layer()
            .event_format(JsonLine)
            .with_writer(|| lines.make_writer());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
        let text = String::from_utf8(lines.lock().unwrap().clone()).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_line_has_timestamp_level_fields_and_target() {
        let mut line = line_of(|| {
            let absent: Option<u64> = None;
            let count = 3_u64;
            let text = "a";
            tracing::warn!(target: "here", count, offset = -1, yes = true, absent, text, shown = %'b', "said {}", 1);
        });
        let time = line.as_object_mut().unwrap().remove("timestamp").unwrap();
        assert!(time.as_str().unwrap().ends_with('Z'));
        let expected = json!({
            "level": "WARN", "message": "said 1", "count": 3, "offset": -1, "yes": true, "text": "a", "shown": "b",
            "target": "here",
        });
        assert_eq!(line, expected);
    }

    #[test]
    fn a_record_of_another_log_has_its_target_and_no_place_in_the_source() {
        let mut line = line_of(|| {
            tracing::info!(
                log.target = "driver",
                log.file = "/home/builder/driver.rs",
                log.line = 3,
                "NOTICE: a notice"
            );
        });
        line.as_object_mut().unwrap().remove("timestamp").unwrap();
        assert_eq!(
            line,
            json!({ "level": "INFO", "message": "NOTICE: a notice", "target": "driver" })
        );
    }

    #[test]
    fn every_ascii_character_decodes_to_itself_once_and_repeated() {
        for character in '\0'..='\u{7f}' {
            let [one, two, nine] = [1, 2, 9].map(|count| character.to_string().repeat(count));
            let line = line_of(|| tracing::info!(one, two, nine));
            assert_eq!(
                json!([one, two, nine]),
                json!([line["one"], line["two"], line["nine"]])
            );
        }
    }

    proptest! {
        #[test]
        fn every_text_is_valid_json_that_decodes_to_itself(text in any::<String>()) {
            let line = line_of(|| tracing::info!(text, shown = %text, "{text}"));
            for member in ["text", "shown", "message"] {
                prop_assert_eq!(&line[member], &Value::from(text.as_str()));
            }
        }
    }
}

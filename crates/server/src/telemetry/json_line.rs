use std::{
    fmt::{self, Debug, Display, Write},
    time::{SystemTime, UNIX_EPOCH},
};

use humantime::format_rfc3339_micros;
use serde_json::Value;
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
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut members = Members { line: String::with_capacity(CAPACITY), record_target: None };
        let now = SystemTime::now().max(UNIX_EPOCH);
        write!(members.line, r#"{{"timestamp":"{}""#, format_rfc3339_micros(now))?;
        members.text("level", |line| line.push_str(event.metadata().level().as_str()));
        event.record(&mut members);
        let record_target = members.record_target.take();
        members.text("target", |line| line.push_str(record_target.as_deref().unwrap_or(event.metadata().target())));
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
    fn member(&mut self, name: &str, write: impl FnOnce(&mut String)) {
        if !name.starts_with(RECORD_PREFIX) {
            self.line.push_str(",\"");
            self.line.push_str(name);
            self.line.push_str("\":");
            write(&mut self.line);
        }
    }

    /// Numbers and booleans can be written.
    fn literal(&mut self, field: &Field, value: impl Display) {
        self.member(field.name(), |line| write!(line, "{value}").unwrap_or_default());
    }

    fn text(&mut self, name: &str, write: impl FnOnce(&mut String)) {
        self.member(name, |line| {
            line.push('"');
            let start = line.len();
            write(line);
            escape(line, start);
            line.push('"');
        });
    }
}

/// Escapes the end of a line as the content of a JSON string.
fn escape(line: &mut String, start: usize) {
    let needs_escape = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    // Without an early end, the compiler checks many bytes at a time.
    let text = &line[start..];
    if text.bytes().fold(false, |found, byte| found | needs_escape(byte)) {
        let quoted = Value::from(text).to_string();
        line.replace_range(start.., &quoted[1..quoted.len() - 1]);
    }
}

impl Visit for Members {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "log.target" {
            self.record_target = Some(value.to_owned());
        }
        self.text(field.name(), |line| line.push_str(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.literal(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.literal(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.literal(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // A value that cannot be formatted is cut off.
        self.text(field.name(), |line| write!(line, "{value:?}").unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use proptest::prelude::*;
    use serde_json::json;
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Runs `log` and returns the one line that it writes.
    fn line_of(log: impl FnOnce()) -> Value {
        let lines = Lines::default();
        let writer = lines.clone();
        let layer = tracing_subscriber::fmt::layer().event_format(JsonLine).with_writer(move || writer.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
        let bytes = std::mem::take(&mut *lines.0.lock().unwrap());
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_line_has_timestamp_level_fields_and_target() {
        let mut line = line_of(|| {
            let absent: Option<u64> = None;
            let (count, text) = (3_u64, "a");
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
        assert_eq!(line, json!({ "level": "INFO", "message": "NOTICE: a notice", "target": "driver" }));
    }

    /// Alone, repeated, and where the search for it may use larger pieces.
    #[test]
    fn every_ascii_character_is_valid_json_in_each_part_of_a_text() {
        for character in (0..128).map(char::from) {
            let texts = ["{}", "{}{}", "1234567{}", "12345678{}"];
            for text in texts.map(|text| text.replace("{}", &character.to_string())) {
                assert_eq!(line_of(|| tracing::info!(text))["text"], *text, "{text:?}");
            }
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

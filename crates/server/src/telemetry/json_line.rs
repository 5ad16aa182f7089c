use std::fmt::{self, Debug, Write};

use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    fmt::{
        FmtContext, FormatEvent, FormatFields,
        format::Writer,
        time::{FormatTime, SystemTime},
    },
    registry::LookupSpan,
};

/// Prefix of the fields in which `tracing-log` keeps target and source file of a record of the crate `log`. They are
/// left out: the file is a path of the machine that built the program.
const RECORD_PREFIX: &str = "log.";

/// Formats an event as one line of JSON: timestamp, level, fields, target. The format of `tracing-subscriber` costs a
/// refused request about a tenth of its CPU time (ADR 0009).
pub(super) struct JsonLine;

impl<S, N> FormatEvent<S, N> for JsonLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        writer.write_str(r#"{"timestamp":""#)?;
        SystemTime.format_time(&mut writer)?;
        write!(writer, r#"","level":"{}""#, event.metadata().level())?;
        let mut members = Members { writer, record_target: None, result: Ok(()) };
        event.record(&mut members);
        let record_target = members.record_target.take();
        members.text("target", record_target.as_deref().unwrap_or(event.metadata().target()));
        let Members { mut writer, result, .. } = members;
        result.and_then(|()| writer.write_str("}\n"))
    }
}

/// Writes the members of a JSON object. After an error, it writes nothing more.
struct Members<'a> {
    writer: Writer<'a>,
    record_target: Option<String>,
    result: fmt::Result,
}

impl Members<'_> {
    fn member(&mut self, name: &str, value: impl FnOnce(&mut Writer<'_>) -> fmt::Result) {
        if self.result.is_ok() && !name.starts_with(RECORD_PREFIX) {
            let name = write!(self.writer, r#","{name}":"#);
            self.result = name.and_then(|()| value(&mut self.writer));
        }
    }

    fn text(&mut self, name: &str, text: &str) {
        self.member(name, |writer| {
            writer.write_char('"')?;
            EscapedText(writer).write_str(text)?;
            writer.write_char('"')
        });
    }
}

impl Visit for Members<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "log.target" {
            self.record_target = Some(value.to_owned());
        }
        self.text(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.member(field.name(), |writer| write!(writer, "{value}"));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.member(field.name(), |writer| write!(writer, "{value}"));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.member(field.name(), |writer| write!(writer, "{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.member(field.name(), |writer| {
            writer.write_char('"')?;
            write!(EscapedText(writer), "{value:?}")?;
            writer.write_char('"')
        });
    }
}

/// Escapes the content of a JSON string. Pieces can be escaped separately, because no escape spans two characters.
struct EscapedText<'a, 'b>(&'a mut Writer<'b>);

impl Write for EscapedText<'_, '_> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        if piece.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
            return self.0.write_str(piece);
        }
        let quoted = serde_json::to_string(piece).map_err(|_| fmt::Error)?;
        self.0.write_str(&quoted[1..quoted.len() - 1])
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use proptest::prelude::*;
    use serde_json::{Value, json};
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

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

/// Writes an event as a line of JSON: its time, its level, its fields, its target. There is one for each request; the
/// general format of `tracing-subscriber` cost a tenth of all that a refused request does (see ADR 0009).
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
        let mut members = Members { writer, result: Ok(()) };
        event.record(&mut members);
        members.text("target", event.metadata().target());
        let Members { mut writer, result } = members;
        result.and_then(|()| writer.write_str("}\n"))
    }
}

/// Members of an object, written as they come. After a failure, nothing more is.
struct Members<'a> {
    writer: Writer<'a>,
    result: fmt::Result,
}

impl Members<'_> {
    fn member(&mut self, name: &str, value: impl FnOnce(&mut Writer<'_>) -> fmt::Result) {
        if self.result.is_ok() {
            let name = write!(self.writer, r#","{name}":"#);
            self.result = name.and_then(|()| value(&mut self.writer));
        }
    }

    fn text(&mut self, name: &str, text: &str) {
        self.member(name, |writer| {
            writer.write_char('"')?;
            Text(writer).write_str(text)?;
            writer.write_char('"')
        });
    }
}

impl Visit for Members<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
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
            write!(Text(writer), "{value:?}")?;
            writer.write_char('"')
        });
    }
}

/// The inside of a JSON text. It can be written piece by piece: what has to be escaped is one character each time.
struct Text<'a, 'b>(&'a mut Writer<'b>);

impl Write for Text<'_, '_> {
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

    /// What is written by this, which has to be one line.
    fn logged(log: impl FnOnce()) -> Value {
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
    fn a_line_has_the_time_the_level_every_field_and_the_target() {
        let mut line = logged(|| {
            let absent: Option<u64> = None;
            tracing::warn!(target: "here", count = 3_u64, offset = -1, yes = true, absent, text = "a", shown = %'b', "said {}", 1);
        });
        let time = line.as_object_mut().unwrap().remove("timestamp").unwrap();
        assert!(time.as_str().unwrap().ends_with('Z'));
        let expected = json!({
            "level": "WARN", "message": "said 1", "count": 3, "offset": -1, "yes": true, "text": "a", "shown": "b",
            "target": "here",
        });
        assert_eq!(line, expected);
    }

    proptest! {
        #[test]
        fn every_text_comes_back(text in any::<String>()) {
            let line = logged(|| tracing::info!(text, shown = %text, "{text}"));
            for member in ["text", "shown", "message"] {
                prop_assert_eq!(&line[member], &Value::from(text.as_str()));
            }
        }
    }
}

use std::collections::BTreeMap;

use crate::test_app::TestApp;

/// The values of a response of `/metrics`, by series.
pub(crate) struct Samples(BTreeMap<String, String>);

impl Samples {
    #[track_caller]
    pub(crate) fn read(app: &TestApp) -> Self {
        let response = app.management("GET", "/metrics").send();
        let lines = response.assert_status(200).text().lines().filter(|line| !line.starts_with('#'));
        let samples = lines.map(|line| line.rsplit_once(' ').expect("a series and a value"));
        Self(samples.map(|(series, value)| (series.to_owned(), value.to_owned())).collect())
    }

    /// Number of series.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The value of a series of the API listener, which is its name without the prefix, and its labels. 0 if it is
    /// absent.
    #[track_caller]
    pub(crate) fn http(&self, series: &str) -> usize {
        let value = self.0.get(&format!("animal_store_http_{series}"));
        value.map_or(0, |value| value.parse().expect("a whole number"))
    }

    /// The value of a series of the API listener in seconds.
    #[track_caller]
    pub(crate) fn seconds(&self, series: &str) -> f64 {
        let value = self.0.get(&format!("animal_store_http_{series}")).expect("a series");
        value.parse().expect("a number")
    }

    /// The sum over all series of the API listener that have this name.
    pub(crate) fn sum(&self, name: &str) -> usize {
        let name = format!("animal_store_http_{name}");
        let series = self.0.iter().filter(|(series, _)| series.split('{').next() == Some(&name));
        series.map(|(_, value)| value.parse::<usize>().expect("a whole number")).sum()
    }
}

//! `animal-store doctor`: prints a finding per line.

use animal_store_app::{Finding, Verdict};
use anyhow::ensure;
use clap::Args;
use serde::Serialize;

use crate::output::{print, table};

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Prints a JSON document.
    #[arg(long)]
    json: bool,
}

/// The findings with the worst verdict of them.
#[derive(Serialize)]
struct Document<'a> {
    verdict: &'static str,
    findings: Vec<FindingRow<'a>>,
}

#[derive(Serialize)]
struct FindingRow<'a> {
    subject: &'static str,
    verdict: &'static str,
    found: &'a str,
    advice: Option<&'a str>,
}

/// Prints the findings.
///
/// # Errors
/// If a finding is an error.
pub fn run(args: &DoctorArgs, findings: &[Finding]) -> anyhow::Result<()> {
    let rows: Vec<_> = findings.iter().map(FindingRow::from).collect();
    print(if args.json {
        json(findings, rows)?
    } else {
        text(&rows)
    })?;
    let errors = findings
        .iter()
        .filter(|finding| finding.verdict == Verdict::Error)
        .count();
    ensure!(errors == 0, "errors found: {errors}");
    Ok(())
}

impl<'a> From<&'a Finding> for FindingRow<'a> {
    fn from(finding: &'a Finding) -> Self {
        Self {
            subject: finding.subject,
            verdict: finding.verdict.as_str(),
            found: &finding.found,
            advice: finding.advice.as_deref(),
        }
    }
}

/// A line per finding, and a line for its advice.
fn text(findings: &[FindingRow<'_>]) -> String {
    let mut rows = Vec::new();
    for finding in findings {
        rows.push([finding.verdict, finding.subject, finding.found].map(str::to_owned));
        if let Some(advice) = finding.advice {
            rows.push([String::new(), String::new(), format!("-> {advice}")]);
        }
    }
    table(&rows)
}

fn json(findings: &[Finding], rows: Vec<FindingRow<'_>>) -> serde_json::Result<String> {
    let verdicts = findings.iter().map(|finding| finding.verdict);
    let document = Document {
        verdict: verdicts.max().unwrap_or(Verdict::Ok).as_str(),
        findings: rows,
    };
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

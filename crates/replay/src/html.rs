//! The report as one self-contained page: no script, no font, no network. The text scrolls sideways, also by the keyboard.

use crate::report::Report;

const STYLE: &str = ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;\
padding:0 1rem;color:#1f2328;background:#fff}svg{width:100%;height:auto}pre{overflow-x:auto;font:14px/1.5 ui-monospace,monospace}\
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}}";

pub(crate) fn page(report: &Report, text: &str, svg: &str) -> String {
    let limits: Vec<&str> = report.limits.iter().map(|limit| limit.name.as_str()).collect();
    let title =
        escaped(&format!("{}: {} of {} requests denied", limits.join(", "), report.denied, report.read.requests));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<style>{STYLE}</style>\n\
         <main>\n<h1>{title}</h1>\n{svg}\n<pre tabindex=\"0\">{}</pre>\n</main>\n</html>\n",
        escaped(text)
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

//! Demand, grants and denials over time as an SVG.

use crate::error::Error;
use crate::series::Series;
use crate::svg::Svg;
use jiff::Timestamp;
use plotters::prelude::*;

const SIZE: (u32, u32) = (960, 420);
/// Height of the legend, px; it is beside the caption, where it covers no step.
const LEGEND: i32 = 24;
/// Replaced by a CSS colour at the end, since the plotter requires RGB values.
const INK: RGBColor = RGBColor(1, 2, 3);
/// Legible on white and on black.
const GRANTED: RGBColor = RGBColor(46, 134, 222);
const DENIED: RGBColor = RGBColor(230, 84, 84);
const FONT: &str = "system-ui, sans-serif";
const STYLE: &str = "<style>svg{color:#1f2328;background:#fff}\
@media(prefers-color-scheme:dark){svg{color:#e6edf3;background:#0d1117}}</style>";

pub(crate) fn draw(series: &Series) -> Result<String, Error> {
    let mut svg = String::new();
    drawn(series, &mut svg).map_err(|error| Error(format!("the chart cannot be drawn: {error}")))?;
    let svg = svg.replace(&format!("#{:02X}{:02X}{:02X}", INK.0, INK.1, INK.2), "currentColor");
    // After the tag of the root.
    Ok(match svg.split_once(">\n") {
        Some((root, rest)) => format!("{root} role=\"img\" aria-label=\"Demand over time\">\n{STYLE}\n{rest}"),
        None => svg,
    })
}

fn drawn(series: &Series, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let width = series.width_ms;
    // Each step is drawn flat, from its beginning to its end.
    let edges = |value: fn(f64, f64) -> f64| {
        let points = series.steps().flat_map(move |(at, step)| {
            let tokens = value(step.granted, step.denied);
            [(at, tokens), (at + width, tokens)]
        });
        points.collect::<Vec<_>>()
    };
    let (demand, granted) = (edges(|granted, denied| granted + denied), edges(|granted, _| granted));
    let (from, to) = (demand.first().map_or(0.0, |p| p.0), demand.last().map_or(width, |p| p.0));
    let most = demand.iter().fold(1.0, |most: f64, point| most.max(point.1));

    let area = Svg::new(svg, SIZE).into_drawing_area();
    let font = |size: u32| (FONT, size).into_font().color(&INK);
    let mut chart = ChartBuilder::on(&area)
        .margin(16)
        // Half of the last time is beyond the end of its axis.
        .margin_right(40)
        .caption(format!("Tokens in each {} s", width / 1000.0), font(18))
        .x_label_area_size(36)
        .y_label_area_size(72)
        .build_cartesian_2d(from..to, 0.0..most * 1.05)?;
    chart
        .configure_mesh()
        .axis_style(INK.mix(0.6))
        .bold_line_style(INK.mix(0.12))
        .light_line_style(TRANSPARENT)
        .label_style(font(12))
        .x_labels(6)
        .x_label_formatter(&|at| label(*at, to - from))
        // Sums of steps of 0.1 have more digits.
        .y_label_formatter(&|tokens| ((tokens * 1e6).round() / 1e6).to_string())
        .draw()?;
    chart.draw_series(AreaSeries::new(demand, 0.0, DENIED))?;
    chart.draw_series(AreaSeries::new(granted, 0.0, GRANTED))?;
    // The legend of the plotter measures text through the host: see svg.rs.
    for (x, label, color) in [(756, "denied", DENIED), (838, "granted", GRANTED)] {
        area.draw(&Text::new(label, (x + 22, LEGEND), font(13)))?;
        area.draw(&Rectangle::new([(x, LEGEND), (x + 14, LEGEND + 10)], color.filled()))?;
    }
    area.present()?;
    Ok(())
}

/// A time on the axis: to the second if the whole is short, to the minute or the day if it is long.
fn label(ms: f64, span_ms: f64) -> String {
    let Ok(at) = Timestamp::from_millisecond(ms as i64) else { return String::new() };
    let format = match span_ms {
        span if span < 600_000.0 => "%H:%M:%S",
        span if span < 172_800_000.0 => "%m-%d %H:%M",
        _ => "%Y-%m-%d",
    };
    at.strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axes_span_all_steps_and_the_most_tokens() {
        let mut series = Series::new();
        for second in 0..4 {
            series.add(1.7e12 + f64::from(second) * 1e3, 3.0, true);
            series.add(1.7e12 + f64::from(second) * 1e3, 5.0, false);
        }
        let svg = draw(&series).expect("a chart");
        let labels: Vec<&str> = svg.lines().filter(|line| !line.starts_with('<')).collect();
        let tokens = ["0", "1", "2", "3", "4", "5", "6", "7", "8"];
        let times = ["22:13:20", "22:13:21", "22:13:22", "22:13:23", "22:13:24"];
        assert_eq!(labels, [&["Tokens in each 1 s"], &tokens[..], &times, &["denied", "granted"]].concat());
        // The last time is centred at the end of its axis.
        let ends = svg.lines().filter(|line| line.starts_with("<text") && line.contains("middle"));
        let x = |line: &str| line.split_once("x=\"")?.1.split('"').next()?.parse::<u32>().ok();
        assert!(ends.filter_map(x).max().is_some_and(|last| last + 40 <= SIZE.0), "{svg}");
        for shape in ["<polygon", "<rect", "<line", "<polyline"] {
            assert!(svg.contains(shape), "{shape}");
        }
        series.add(1.7e12 + 3.6e6, 1.0, true);
        let long = draw(&series).expect("a chart");
        assert!(long.contains("\n11-14 22:30\n"), "{long}");
    }

    #[test]
    fn a_time_has_the_digits_that_the_span_needs() {
        let spans = [599_999.0, 600_000.0, 172_799_999.0, 172_800_000.0];
        let labels = spans.map(|span| label(1.7e12, span));
        assert_eq!(labels, ["22:13:20", "11-14 22:13", "11-14 22:13", "2023-11-14"]);
    }
}

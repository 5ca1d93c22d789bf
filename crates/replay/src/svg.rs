//! The plotter's SVG backend with an estimate of text sizes that needs no host: as WebAssembly, the plotter measures text in
//! a browser's document.

use plotters::prelude::SVGBackend;
use plotters_backend::{BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind};

/// Plotters' sizes of fonts per em; the width of a character per em.
const SIZE_PER_EM: f64 = 1.24 * 1.24;
const WIDTH_PER_EM: f64 = 0.7;
/// Above and below the baseline, per em.
const ASCENT_PER_EM: f64 = 1.0;
const DESCENT_PER_EM: f64 = 0.24;

pub(crate) struct Svg<'a>(SVGBackend<'a>);

type Drawn<'a> = Result<(), DrawingErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>>;

impl<'a> Svg<'a> {
    /// A picture of `size` px, which is written to `text` when it is presented.
    pub(crate) fn new(text: &'a mut String, size: (u32, u32)) -> Svg<'a> {
        Svg(SVGBackend::with_string(text, size))
    }
}

impl<'a> DrawingBackend for Svg<'a> {
    type ErrorType = <SVGBackend<'a> as DrawingBackend>::ErrorType;

    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        style: &S,
    ) -> Result<(u32, u32), DrawingErrorKind<Self::ErrorType>> {
        let em = style.size() / SIZE_PER_EM;
        let width = (em * WIDTH_PER_EM * text.len() as f64).round();
        let height = (em * ASCENT_PER_EM).round() + (em * DESCENT_PER_EM).round();
        Ok((width as u32, height as u32))
    }

    fn get_size(&self) -> (u32, u32) {
        self.0.get_size()
    }

    fn ensure_prepared(&mut self) -> Drawn<'a> {
        self.0.ensure_prepared()
    }

    fn present(&mut self) -> Drawn<'a> {
        self.0.present()
    }

    fn draw_pixel(&mut self, at: BackendCoord, color: BackendColor) -> Drawn<'a> {
        self.0.draw_pixel(at, color)
    }

    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S) -> Drawn<'a> {
        self.0.draw_line(from, to, style)
    }

    fn draw_rect<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S, fill: bool) -> Drawn<'a> {
        self.0.draw_rect(from, to, style, fill)
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, path: I, style: &S) -> Drawn<'a> {
        self.0.draw_path(path, style)
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        points: I,
        style: &S,
    ) -> Drawn<'a> {
        self.0.fill_polygon(points, style)
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, at: BackendCoord) -> Drawn<'a> {
        self.0.draw_text(text, style, at)
    }
}

// Package figure writes what was measured: Markdown tables, CSV files, plots as SVG, and the parts of a page that
// tables and plots replace. It has no state.
//
// It draws plots itself, because the figures have two Y axes, which gonum/plot does not draw.
package figure

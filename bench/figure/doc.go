// Package figure writes benchmark results: Markdown tables, CSV files, and SVG plots. It inserts text into a page
// between markers.
//
// Its functions keep no state. Only bench/cmd and cmd may import it.
package figure

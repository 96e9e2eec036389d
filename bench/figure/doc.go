// Package figure writes what benchmarks measured: tables in markdown, CSV files, and plots in SVG, and puts them into a
// page between markers.
//
// Its functions keep no state. Who may import it: bench/cmd and cmd.
package figure

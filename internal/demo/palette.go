package demo

// A kind is what a cell of a chart shows.
type kind uint8

const (
	empty kind = iota
	line       // the limit
	served
	refused
	failed
)

// The shapes differ, so that the chart can be read without colours.
var shapes = [...]string{empty: " ", line: "┈", served: "█", refused: "▒", failed: "░"}

var colours = [...]string{empty: "", line: "\x1b[2m", served: "\x1b[32m", refused: "\x1b[31m", failed: "\x1b[33m"}

// A palette says whether colours are used.
type palette bool

func (p palette) paint(k kind) string {
	if !p || colours[k] == "" {
		return shapes[k]
	}
	return colours[k] + shapes[k] + "\x1b[0m"
}

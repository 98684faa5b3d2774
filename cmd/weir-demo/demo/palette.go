package demo

// A kind is what a cell of a picture shows.
type kind uint8

const (
	empty kind = iota
	useful
	wasted
	all  // of a tenant's calls are answered
	most // of them
	some
	none
)

// The shapes differ, so that the picture can be read without colours.
var shapes = [...]string{empty: " ", useful: "█", wasted: "░", all: "█", most: "▓", some: "▒", none: "·"}

const green, yellow, red = "\x1b[32m", "\x1b[33m", "\x1b[31m"

var colours = [...]string{empty: "", useful: green, wasted: red, all: green, most: yellow, some: yellow, none: red}

// A palette says whether colours are used.
type palette bool

func (p palette) paint(k kind) string {
	if !p || colours[k] == "" {
		return shapes[k]
	}
	return colours[k] + shapes[k] + "\x1b[0m"
}

// kindOf is how a share of calls is shown; below 0 there were none.
func kindOf(share float64) kind {
	switch {
	case share < 0:
		return empty
	case share >= healthy:
		return all
	case share >= 0.75:
		return most
	case share >= 0.1:
		return some
	}
	return none
}

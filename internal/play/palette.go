package play

// A kind is the content of a cell of a picture.
type kind uint8

const (
	empty kind = iota
	useful
	wasted
	all  // all calls of a tenant are answered
	most // most of its calls
	some
	none
)

// shapes differ, so that the picture is readable without colors.
var shapes = [...]string{empty: " ", useful: "█", wasted: "░", all: "█", most: "▓", some: "▒", none: "·"}

const green, yellow, red = "\x1b[32m", "\x1b[33m", "\x1b[31m"

var colours = [...]string{empty: "", useful: green, wasted: red, all: green, most: yellow, some: yellow, none: red}

// A Palette specifies whether to use colors.
type Palette bool

func (p Palette) paint(k kind) string {
	if !p || colours[k] == "" {
		return shapes[k]
	}
	return colours[k] + shapes[k] + "\x1b[0m"
}

// kindOf returns the cell for a share of answered calls. A negative share means no calls.
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

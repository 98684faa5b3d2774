package trace

import "time"

// A Span is one thing that took time, as it is exported.
type Span struct {
	Trace      ID
	ID, Parent SpanID // Parent is zero for the first of a trace
	State      string // tracestate

	Name       string
	Kind       Kind
	Start, End time.Time
	Failed     bool
	Message    string // of what failed
	Attrs      []Attr
	Remote     bool // the parent is another program's
}

// A Kind is what a span is to its neighbours, in OTLP's numbers.
type Kind uint8

const (
	Internal Kind = 1 // weir's own doing: a wait, or a rest between attempts
	Server   Kind = 2 // a request that came to weir
	Client   Kind = 3 // an attempt: a request to the upstream
)

// An Attr is what a span has to say, a text or a number.
type Attr struct {
	Key    string
	Text   string
	Number int64
	Is     AttrKind
}

// An AttrKind says which of an Attr's values counts.
type AttrKind uint8

const (
	IsText AttrKind = iota
	IsNumber
)

// text adds a text, unless it is empty; number adds a number.
func (s *Span) text(key, value string) {
	if value != "" {
		s.add(Attr{Key: key, Text: value})
	}
}

func (s *Span) number(key string, n int64) { s.add(Attr{Key: key, Number: n, Is: IsNumber}) }

// add has room for as many as nearly every span has, at once.
func (s *Span) add(a Attr) {
	if s.Attrs == nil {
		s.Attrs = make([]Attr, 0, 8)
	}
	s.Attrs = append(s.Attrs, a)
}

// Get is the attribute of that name, the zero Attr if there is none.
func (s *Span) Get(key string) Attr {
	for _, a := range s.Attrs {
		if a.Key == key {
			return a
		}
	}
	return Attr{}
}

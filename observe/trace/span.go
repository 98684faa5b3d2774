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
	Consumer Kind = 5 // a delivery, of a request that came before
)

// An Attr is what a span has to say. The zero Attr says nothing.
type Attr struct {
	Key    string
	Text   string
	Number int64
	Float  float64
	Texts  []string
	Is     AttrKind
}

// An AttrKind says which of an Attr's values counts.
type AttrKind uint8

const (
	IsText AttrKind = iota
	IsNumber
	IsBool // Number is 1 for true
	IsFloat
	IsTexts
)

// Text, Number, Float, Bool and Texts make an Attr.
func Text(key, value string) Attr         { return Attr{Key: key, Text: value} }
func Number(key string, n int64) Attr     { return Attr{Key: key, Number: n, Is: IsNumber} }
func Float(key string, f float64) Attr    { return Attr{Key: key, Float: f, Is: IsFloat} }
func Texts(key string, all []string) Attr { return Attr{Key: key, Texts: all, Is: IsTexts} }
func Bool(key string, yes bool) Attr {
	a := Attr{Key: key, Is: IsBool}
	if yes {
		a.Number = 1
	}
	return a
}

// text adds a text, unless it is empty; number adds a number.
func (s *Span) text(key, value string) {
	if value != "" {
		s.add(Text(key, value))
	}
}

func (s *Span) number(key string, n int64) { s.add(Number(key, n)) }

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

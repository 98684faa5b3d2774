package trace

import "time"

// A Span is an operation with a duration, in the form in which it is exported.
type Span struct {
	Trace      ID
	ID, Parent SpanID // Parent is zero for the first span of a trace
	State      string // tracestate

	Name       string
	Kind       Kind
	Start, End time.Time
	Failed     bool
	Message    string // of the failure
	Attrs      []Attr
	Remote     bool // the parent belongs to another program
}

// A Kind is the role of a span, in OTLP's numbers.
type Kind uint8

const (
	Internal Kind = 1 // within weir: a wait, or a delay between attempts
	Server   Kind = 2 // a request that weir received
	Client   Kind = 3 // an attempt: a request to the upstream
	Consumer Kind = 5 // a delivery of an earlier request
)

// An Attr is an attribute of a span. The zero Attr has no key.
type Attr struct {
	Key    string
	Text   string
	Number int64
	Float  float64
	Texts  []string
	Is     AttrKind
}

// An AttrKind selects the value of an Attr.
type AttrKind uint8

const (
	IsText AttrKind = iota
	IsNumber
	IsBool // Number is 1 for true
	IsFloat
	IsTexts
)

// Text, Number, Float, Bool and Texts return an Attr.
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

// text adds a text unless it is empty. number adds a number.
func (s *Span) text(key, value string) {
	if value != "" {
		s.add(Text(key, value))
	}
}

func (s *Span) number(key string, n int64) { s.add(Number(key, n)) }

// add adds an attribute. It allocates enough for most spans at the first.
func (s *Span) add(a Attr) {
	if s.Attrs == nil {
		s.Attrs = make([]Attr, 0, 8)
	}
	s.Attrs = append(s.Attrs, a)
}

// Get returns the attribute with this key, the zero Attr if there is none.
func (s *Span) Get(key string) Attr {
	for _, a := range s.Attrs {
		if a.Key == key {
			return a
		}
	}
	return Attr{}
}

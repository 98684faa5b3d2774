package dynamostore

import (
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// An update is an update of one item, with its expressions and conditions.
type update struct {
	set, add, remove, when strings.Builder

	values  map[string]types.AttributeValue
	numbers map[string]string
	removed []string
	strict  bool // no other update may run concurrently, because of its conditions
	life    bool // it uses the attribute ttl, a reserved word that needs an alias
}

func (u *update) part(b *strings.Builder, separator string) *strings.Builder {
	if b.Len() > 0 {
		b.WriteString(separator)
	}
	return b
}

// number returns the placeholder of a number.
func (u *update) number(n string) string {
	if name, ok := u.numbers[n]; ok {
		return name
	}
	name := u.value(&types.AttributeValueMemberN{Value: n})
	if u.numbers == nil {
		u.numbers = make(map[string]string)
	}
	u.numbers[n] = name
	return name
}

func (u *update) text(t string) string { return u.value(&types.AttributeValueMemberS{Value: t}) }

func (u *update) value(v types.AttributeValue) string {
	if u.values == nil {
		u.values = make(map[string]types.AttributeValue)
	}
	name := ":v" + strconv.Itoa(len(u.values))
	u.values[name] = v
	return name
}

func (u *update) setNumber(name, n string) { u.setTo(name, u.number(n)) }
func (u *update) setText(name, t string)   { u.setTo(name, u.text(t)) }

func (u *update) setTo(name, value string) {
	b := u.part(&u.set, ", ")
	b.WriteString(name)
	b.WriteString(" = ")
	b.WriteString(value)
}

func (u *update) addNumber(name, n string) {
	b := u.part(&u.add, ", ")
	b.WriteString(name)
	b.WriteByte(' ')
	b.WriteString(u.number(n))
}

func (u *update) drop(name string) {
	u.part(&u.remove, ", ").WriteString(name)
	u.removed = append(u.removed, name)
}

// needs adds a condition. All conditions must hold.
func (u *update) needs(words ...string) {
	b := u.part(&u.when, " AND ")
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w)
	}
}

func (u *update) absent(name string) { u.needs("attribute_not_exists(" + name + ")") }

// same requires that an attribute has the value in it, or is still absent.
func (u *update) same(it item, name string) {
	old, ok := it[name]
	switch {
	case !ok:
		u.absent(name)
	case isText(name):
		u.needs(name, "=", u.text(old))
	default:
		u.needs(name, "=", u.number(old))
	}
}

// isText reports whether an attribute is a text: bases, times and lags of buckets, holds, and answers of lanes.
// Other attributes are numbers.
func isText(name string) bool { return strings.IndexByte("bjloq", name[0]) >= 0 }

func (u *update) empty() bool { return u.size() == 0 }

func (u *update) size() int { return u.set.Len() + u.add.Len() + u.remove.Len() }

func (u *update) expression() string {
	var b strings.Builder
	for _, p := range [...]struct {
		verb string
		part *strings.Builder
	}{{"SET ", &u.set}, {"ADD ", &u.add}, {"REMOVE ", &u.remove}} {
		if p.part.Len() > 0 {
			u.part(&b, " ").WriteString(p.verb)
			b.WriteString(p.part.String())
		}
	}
	return b.String()
}

package redisstore

import (
	"crypto/sha256"
	"encoding/hex"
)

// All keys of a group are "{prefix:group}" and more: what stands in braces is what a
// cluster places them by, so that one script reaches all of them.
//
//	{weir:openai}          since when the state of the group is known, and what is out of it
//	{weir:openai}k:user7   a hash with a field for each limit of the key user7
//	{weir:openai}a:1f      the answer of the latest ask of lane 1f
//	{weir:openai}r:breaker a record
//	{weir:}register        which groups the store knows of, since weir store init
//	{weir:openai}members   who shares its limits, and the part of each

// longest is what stands in a key as it is; of what is longer stands a hash.
const longest = 256

// tag begins a key of the group.
func (s *Store) tag(c *call, group string) {
	c.text = append(c.text, '{')
	c.text = append(c.text, s.prefix...)
	if len(group) > longest {
		c.text = append(c.text, '#')
		c.text = appendSum(c.text, group)
	} else {
		c.text = append(c.text, ':')
		c.text = appendSafe(c.text, group)
	}
	c.text = append(c.text, '}')
}

// end ends a key.
func (c *call) end() { c.ends = append(c.ends, len(c.text)) }

// key is a key of the group, of the kind, for the name.
func (s *Store) key(c *call, group string, kind byte, name string) {
	s.tag(c, group)
	c.text = append(c.text, kind)
	c.text = appendName(c.text, name)
	c.end()
}

// members is the key of those who share the limits of a group.
func (s *Store) members(c *call, group string) {
	s.tag(c, group)
	c.text = append(c.text, "members"...)
	c.end()
}

// lane is the key of a lane's answer.
func (s *Store) lane(c *call, group string, lane uint64) {
	s.tag(c, group)
	c.text = append(c.text, "a:"...)
	for shift := 60; shift >= 0; shift -= 4 {
		c.text = append(c.text, "0123456789abcdef"[lane>>shift&15])
	}
	c.end()
}

// appendName appends a name that is not of the hash tag: any bytes will do there.
func appendName(b []byte, name string) []byte {
	if len(name) > longest {
		return appendSum(append(b, '#'), name)
	}
	return append(append(b, ':'), name...)
}

func appendSum(b []byte, name string) []byte {
	sum := sha256.Sum256([]byte(name))
	return hex.AppendEncode(b, sum[:])
}

// appendSafe appends a name of the hash tag, which ends at the first brace.
func appendSafe(b []byte, name string) []byte {
	for i := range len(name) {
		switch c := name[i]; {
		case c <= ' ', c >= 0x7f, c == '{', c == '}', c == '%', c == ':', c == '#':
			b = append(b, '%', "0123456789ABCDEF"[c>>4], "0123456789ABCDEF"[c&15])
		default:
			b = append(b, c)
		}
	}
	return b
}

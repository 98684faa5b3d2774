package redisstore

import (
	"crypto/sha256"
	"encoding/hex"
)

// All keys of a group begin with "{prefix:group}". A cluster places keys by the text in braces, so one script can
// use all keys of a group.
//
//	{weir:openai}          since when the state of the group is known, and the parts that are out
//	{weir:openai}k:user7   a hash with a field for each limit of the key user7
//	{weir:openai}a:1f      the response to the latest ask of lane 1f
//	{weir:openai}r:breaker a record
//	{weir:}register        the groups that the store knows, since weir store init
//	{weir:openai}members   the processes that share its limits, and the part of each

// longest is the longest name that is written into a key. Longer names are hashed.
const longest = 256

// tag appends the beginning of a key of the group.
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

// end marks the end of a key.
func (c *call) end() { c.ends = append(c.ends, len(c.text)) }

// key appends a key of the group, of the kind, for the name.
func (s *Store) key(c *call, group string, kind byte, name string) {
	s.tag(c, group)
	c.text = append(c.text, kind)
	c.text = appendName(c.text, name)
	c.end()
}

// members appends the key of the processes that share the limits of a group.
func (s *Store) members(c *call, group string) {
	s.tag(c, group)
	c.text = append(c.text, "members"...)
	c.end()
}

// lane appends the key of a lane's latest response.
func (s *Store) lane(c *call, group string, lane uint64) {
	s.tag(c, group)
	c.text = append(c.text, "a:"...)
	for shift := 60; shift >= 0; shift -= 4 {
		c.text = append(c.text, "0123456789abcdef"[lane>>shift&15])
	}
	c.end()
}

// appendName appends a name outside the hash tag, where any bytes are allowed.
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

// appendSafe appends a name inside the hash tag. It escapes braces, because the first closing brace ends the tag.
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

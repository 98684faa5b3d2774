//go:build unix

package attack

import (
	"bytes"
	"fmt"
	"strings"
)

// worst returns a body of about size bytes that is expensive to parse.
func worst(kind string, size int) []byte {
	const head, tail = `{"model":"gpt-4o","messages":[{"role":"user","content":`, `}]}`
	switch kind {
	case "text":
		return []byte(head + `"` + strings.Repeat("word ", size/5) + `"` + tail)
	case "numbers":
		return []byte(head + `"hi","x":[0` + strings.Repeat(",0", size/2) + `]` + tail)
	case "names":
		var b bytes.Buffer
		b.WriteString(head + `"hi","x":{"a":0`)
		for i := 0; b.Len() < size; i++ {
			fmt.Fprintf(&b, `,"%d":0`, i)
		}
		b.WriteString(`}` + tail)
		return b.Bytes()
	}
	return []byte(head + `"hi","x":` + strings.Repeat("[", 500) + strings.Repeat("[],", size/3) + "0" + strings.Repeat("]", 500) + tail)
}

// worsts returns all kinds of bad bodies, each with 1 MiB and 26 MiB.
func worsts() (kinds []string, bodies map[string][]byte) {
	bodies = make(map[string][]byte)
	for _, kind := range []string{"text", "numbers", "names", "nested"} {
		for _, size := range []int{1 << 20, 26 << 20} {
			name := fmt.Sprintf("%s of %d MiB", kind, size>>20)
			bodies[name] = worst(kind, size-2000)
			kinds = append(kinds, name)
		}
	}
	return kinds, bodies
}

package learn

import (
	"bytes"
	"fmt"
	"strings"
)

// A row is a line of a file before and after the change.
type row struct {
	old, text string // with line endings
	is        kindOfRow
}

type kindOfRow uint8

const (
	same kindOfRow = iota
	changed
	added
)

func rowsOf(text []byte) (all []row) {
	for line := range strings.Lines(string(text)) {
		all = append(all, row{line, line, same})
	}
	return all
}

func textOf(all []row) []byte {
	var b bytes.Buffer
	for _, r := range all {
		b.WriteString(r.text)
	}
	return b.Bytes()
}

// set changes a row.
func (r *row) set(text string) {
	r.text = text
	if r.is == same {
		r.is = changed
	}
}

// ending returns the line ending of the file.
func ending(all []row) string {
	if len(all) > 0 && strings.HasSuffix(all[0].old, "\r\n") {
		return "\r\n"
	}
	return "\n"
}

// insert inserts lines after a number of rows.
func insert(all []row, behind int, lines []string) []row {
	end := ending(all)
	next := append([]row{}, all[:behind]...)
	if last := behind - 1; last >= 0 && !strings.HasSuffix(next[last].text, "\n") {
		next[last].set(next[last].text + end)
	}
	for _, l := range lines {
		next = append(next, row{text: l + end, is: added})
	}
	return append(next, all[behind:]...)
}

const around = 3 // lines of context

// unified returns the change in the format of patch. It returns nothing if there is no change.
func unified(name string, all []row) []byte {
	var b bytes.Buffer
	was, is := 0, 0 // number of earlier lines, before and after the change
	for i := 0; i < len(all); {
		if all[i].is == same {
			was, is, i = was+1, is+1, i+1
			continue
		}
		begin, end := max(0, i-around), i
		for j := i; j < len(all) && j <= end+2*around; j++ {
			if all[j].is != same {
				end = j
			}
		}
		stop := min(len(all), end+1+around)
		if b.Len() == 0 {
			fmt.Fprintf(&b, "--- %s\n+++ %s\n", name, name)
		}
		olds, news := counts(all[begin:stop])
		was, is = was-(i-begin), is-(i-begin)
		fmt.Fprintf(&b, "@@ -%s +%s @@\n", span(was, olds), span(is, news))
		hunk(&b, all[begin:stop])
		was, is, i = was+olds, is+news, stop
	}
	return b.Bytes()
}

func counts(all []row) (olds, news int) {
	for _, r := range all {
		news++
		if r.is != added {
			olds++
		}
	}
	return olds, news
}

// span returns the position of n lines after the first before lines.
func span(before, n int) string {
	if n == 0 {
		return fmt.Sprintf("%d,0", before)
	}
	return fmt.Sprintf("%d,%d", before+1, n)
}

// hunk writes adjacent rows, removed lines before added lines.
func hunk(b *bytes.Buffer, all []row) {
	var come []string
	flush := func() {
		for _, text := range come {
			write(b, '+', text)
		}
		come = nil
	}
	for _, r := range all {
		switch r.is {
		case same:
			flush()
			write(b, ' ', r.text)
		case changed:
			write(b, '-', r.old)
			come = append(come, r.text)
		case added:
			come = append(come, r.text)
		}
	}
	flush()
}

func write(b *bytes.Buffer, mark byte, text string) {
	b.WriteByte(mark)
	b.WriteString(text)
	if !strings.HasSuffix(text, "\n") {
		b.WriteString("\n\\ No newline at end of file\n")
	}
}

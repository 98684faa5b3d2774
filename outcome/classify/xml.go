package classify

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"io"
	"strings"
	"time"
)

// readXML reads the errors of S3 (<Error>), of restXml and awsQuery (<ErrorResponse><Error>) and of EC2
// (<Response><Errors><Error>). It returns the name of the root and the text of all elements. Waits are read from elements and
// attributes by the keys of the Table. The body may be truncated anywhere.
func (d *detail) readXML(body []byte, base time.Time) (root, text string) {
	dec := xml.NewDecoder(bytes.NewReader(body))
	dec.Strict = false
	dec.CharsetReader = asIs
	f := jsonFacts{base: base, wait: -1}
	var open []string
	var all strings.Builder
	for {
		t, err := dec.RawToken()
		if err != nil {
			d.field, d.hasField, d.asks = f.waitFor, f.wait >= 0, f.asks
			return root, all.String()
		}
		switch t := t.(type) {
		case xml.StartElement:
			open = append(open, t.Name.Local)
			root = cmp.Or(root, open[0])
			for _, a := range t.Attr {
				f.waitAt(nil, "", a.Name.Local, a.Value)
			}
		case xml.EndElement:
			open = open[:max(len(open)-1, 0)]
		case xml.CharData:
			value := string(bytes.TrimSpace(t))
			if value == "" || len(open) == 0 {
				continue
			}
			d.xmlText(open, value)
			f.waitAt(nil, "", open[len(open)-1], value)
			if all.Len() < maxMessage {
				all.WriteString(value)
				all.WriteByte('\n')
			}
		}
	}
}

// xmlText keeps the code and the message of the first error. A code elsewhere counts if it determines the class.
func (d *detail) xmlText(open []string, text string) {
	last := open[len(open)-1]
	d.fault = d.fault || len(open) > 1 && open[1] == "fault"
	inError := len(open) > 1 && open[len(open)-2] == "Error"
	switch {
	case last == "faultcode" && decides(text[strings.LastIndexByte(text, ':')+1:]): // of SOAP, with a prefix
		d.add(text[strings.LastIndexByte(text, ':')+1:])
	case len(d.codes) < maxCodes && (inError && last == "Code" || !inError && isCode(open) && decides(text)):
		d.add(text)
	case inError && last == "Message" && d.message == "":
		d.message = text
	}
}

// isCode reports whether an element of an error is its code, in another spelling than AWS's.
func isCode(open []string) bool {
	if len(open) < 2 {
		return false
	}
	around, last := fold(open[len(open)-2]), fold(open[len(open)-1])
	return (around == "error" || around == "fault") && (last == "code" || last == "errorcode" || last == "faultcode")
}

// maxCodes is the maximum number of codes that are kept of a document.
const maxCodes = 4

// asIs reads any charset as UTF-8: all known codes are ASCII.
func asIs(_ string, in io.Reader) (io.Reader, error) { return in, nil }

package classify

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"io"
)

// readXML collects from the errors of S3 (<Error>), of restXml and awsQuery
// (<ErrorResponse><Error>) and of EC2 (<Response><Errors><Error>), and returns
// the name of the root. The body may be cut short anywhere.
func (d *detail) readXML(body []byte) (root string) {
	dec := xml.NewDecoder(bytes.NewReader(body))
	dec.Strict = false
	dec.CharsetReader = asIs
	var open []string
	for {
		t, err := dec.RawToken()
		if err != nil {
			return root
		}
		switch t := t.(type) {
		case xml.StartElement:
			open = append(open, t.Name.Local)
			root = cmp.Or(root, open[0])
		case xml.EndElement:
			open = open[:max(len(open)-1, 0)]
		case xml.CharData:
			d.xmlText(open, string(bytes.TrimSpace(t)))
		}
	}
}

// xmlText keeps the code and the message of the first error.
func (d *detail) xmlText(open []string, text string) {
	if len(open) < 2 || open[len(open)-2] != "Error" {
		return
	}
	switch {
	case open[len(open)-1] == "Code" && len(d.codes) < maxCodes:
		d.add(text)
	case open[len(open)-1] == "Message" && d.message == "":
		d.message = text
	}
}

// maxCodes bounds what is kept of a document full of errors.
const maxCodes = 4

// asIs reads any charset as if it were UTF-8: codes are ASCII in all that occur.
func asIs(_ string, in io.Reader) (io.Reader, error) { return in, nil }

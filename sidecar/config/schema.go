package config

import (
	"encoding/json"
	"regexp"
	"strings"
)

// Schema returns a JSON Schema of the file, made from the tables that the reader uses.
func Schema() []byte {
	text, err := json.MarshalIndent(schema(), "", "  ")
	if err != nil {
		panic(err) // it contains only texts, lists and maps
	}
	return append(text, '\n')
}

type schemaOf = map[string]any

// schema returns the schema as a tree.
func schema() schemaOf {
	tables := make(map[string]bool)
	for _, s := range sections {
		tables[s.path()] = true
	}
	defs := make(schemaOf)
	for _, s := range sections {
		fields, required := make(schemaOf), []any{}
		for _, r := range s.rows {
			if !r.documented() {
				continue
			}
			one := r.schema(strings.TrimPrefix(s.path()+"."+r.name, "."), tables)
			one["description"] = r.meaning
			if r.missing == "required" && s.path() == "" {
				required = append(required, r.name)
			}
			fields[r.name] = one
		}
		if len(fields) == 0 {
			continue
		}
		mapping := schemaOf{"type": []any{"object", "null"}, "properties": fields, "additionalProperties": false}
		if len(required) > 0 {
			mapping["required"] = required
		}
		if s.path() == "" { // anchors of the file
			mapping["patternProperties"] = schemaOf{"^x-": true}
		}
		defs["/"+s.path()] = mapping
	}
	return schemaOf{"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "weir.yaml", "$ref": "#/$defs/~1", "$defs": defs}
}

// path returns where the mapping of a table is: "" for the file.
func (t table) path() string {
	if t.title == "The file" {
		return ""
	}
	return strings.Trim(t.title, "`")
}

// Patterns of values. They are wider than what the reader takes: a schema helps editors, and weir check decides.
const (
	durationPattern = `^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`
	ratePattern     = `^[0-9.]+ */ *.+$`
	sizePattern     = `^[0-9]+ *(B|KB|MB|GB|KiB|MiB|GiB)?$`
	sharePattern    = `^[0-9.]+ *%?$`
)

var listedValues = regexp.MustCompile(`^[a-z0-9_-]+(, [a-z0-9_-]+)* or [a-z0-9_-]+$`)

// schema returns the schema of a field by the words for its value.
func (r row) schema(path string, tables map[string]bool) schemaOf {
	var forms []any
	words := r.words
	if short, ok := strings.CutSuffix(words, ", or off"); ok {
		words = short
		forms = append(forms, schemaOf{"enum": []any{"off", "no", "false", false}})
	}
	def := func(name string) schemaOf {
		return schemaOf{"$ref": "#/$defs/" + strings.ReplaceAll("/"+name, "/", "~1")}
	}
	text := schemaOf{"type": "string"}
	textWith := func(pattern string) schemaOf { return schemaOf{"type": []any{"string", "number"}, "pattern": pattern} }
	items := func(one any) schemaOf { return schemaOf{"anyOf": []any{one, schemaOf{"type": "array", "items": one}}} }
	switch {
	case words == "true or false":
		forms = append(forms, schemaOf{"enum": []any{true, false, "true", "false", "yes", "no", "on", "off"}})
	case words == "true":
		forms = append(forms, schemaOf{"enum": []any{true, "true", "yes", "on"}})
	case words == "a whole number", words == "1 to 65536":
		forms = append(forms, schemaOf{"type": "integer"})
	case words == "a number":
		forms = append(forms, schemaOf{"type": "number"})
	case strings.HasPrefix(words, "a duration"):
		forms = append(forms, schemaOf{"type": "string", "pattern": durationPattern})
	case strings.HasPrefix(words, "true, a share"):
		forms = append(forms, schemaOf{"enum": []any{true, "true", "yes", "on"}}, textWith(sharePattern))
	case strings.HasPrefix(words, "a share"):
		forms = append(forms, textWith(sharePattern))
	case words == "a rate (3000/s, 5/min)": // a number is a rate per second
		forms = append(forms, schemaOf{"type": []any{"string", "number"}})
	case strings.HasPrefix(words, "a rate"):
		forms = append(forms, schemaOf{"type": "string", "pattern": ratePattern})
	case strings.HasPrefix(words, "a size"):
		forms = append(forms, textWith(sizePattern))
	case words == "auto, a number, fields":
		forms = append(forms, schemaOf{"enum": []any{"auto"}}, schemaOf{"type": "integer", "minimum": 1})
	case strings.HasSuffix(words, "by name") && tables[path+".NAME"]:
		one := []any{def(path + ".NAME")}
		if strings.HasSuffix(path, ".limits") { // a limit may be its rate alone, or off
			one = append(one, schemaOf{"type": "string", "pattern": ratePattern}, schemaOf{"enum": []any{"off", "no", "false", false}})
		} else if strings.HasSuffix(path, ".operations") {
			one = append(one, schemaOf{"enum": []any{"off", "no", "false", false}})
		}
		forms = append(forms, schemaOf{"type": []any{"object", "null"}, "additionalProperties": schemaOf{"anyOf": one}})
	case strings.HasPrefix(words, "limits by name"):
		forms = append(forms, schemaOf{"type": []any{"object", "null"}, "additionalProperties": schemaOf{"anyOf": []any{def("upstreams.NAME.limits.NAME"), schemaOf{"type": []any{"string", "boolean"}}}}})
	case strings.HasPrefix(words, "a list of") && tables[path+"[]"]:
		forms = append(forms, schemaOf{"type": "array", "items": def(path + "[]")})
	case strings.HasPrefix(words, "a list of"):
		forms = append(forms, items(schemaOf{"type": []any{"string", "number"}}))
	case strings.Contains(words, "fields"):
		switch {
		case tables[path]:
			forms = append(forms, def(path))
		case tables[path+".NAME"]:
			forms = append(forms, schemaOf{"type": "object", "additionalProperties": def(path + ".NAME")})
		}
		if strings.Contains(words, "true") {
			forms = append(forms, schemaOf{"enum": []any{true, "true", "yes", "on"}})
		}
		if strings.Contains(words, "name") || strings.Contains(words, "scope") || strings.Contains(words, "file") {
			forms = append(forms, text)
		}
	case listedValues.MatchString(words):
		var values []any
		for _, v := range strings.Split(strings.ReplaceAll(words, " or ", ", "), ", ") {
			if values = append(values, v); v == "true" || v == "false" || v == "yes" || v == "no" || v == "off" {
				values = append(values, v == "true" || v == "yes")
			}
		}
		forms = append(forms, schemaOf{"enum": values})
	case words == combination.words:
		forms = append(forms, text, schemaOf{"type": "array", "items": text, "minItems": 2, "uniqueItems": true})
	case strings.HasPrefix(words, "a text"), strings.HasPrefix(words, "host:port"), strings.HasPrefix(words, "a URL"), strings.HasPrefix(words, "a path"), strings.HasPrefix(words, "the name"):
		forms = append(forms, text)
	}
	known := forms[:0:0]
	for _, f := range forms {
		if ref, ok := f.(schemaOf)["$ref"].(string); !ok || documentedTable(strings.ReplaceAll(strings.TrimPrefix(ref, "#/$defs/~1"), "~1", "/")) {
			known = append(known, f)
		}
	}
	switch len(known) {
	case 0:
		return schemaOf{}
	case 1:
		return schemaOf{"allOf": known}
	}
	return schemaOf{"anyOf": known}
}

// documentedTable reports whether a table has fields that a file may have.
func documentedTable(path string) bool {
	for _, s := range sections {
		if s.path() == path {
			for _, r := range s.rows {
				if r.documented() {
					return true
				}
			}
		}
	}
	return false
}

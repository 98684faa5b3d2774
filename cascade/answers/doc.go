// Package answers is a book of answers written beforehand: the tier of a cascade
// that answers when no model can. A question finds its answer through a text
// index (stems of words for each language, pairs of characters for Japanese,
// Chinese and Korean), or finds none.
//
// # The file
//
//	answers:
//	  - id: returns                       # optional
//	    questions:                        # a list, or lists by language
//	      - How do I return an item?
//	      - 商品を返品するにはどうすればいいですか
//	    keywords: [send back, 返品]       # words and phrases that alone ask for it
//	    answer:                           # a text, or texts by language
//	      en: You can return anything within 30 days.
//	      ja: お届けから30日以内なら返品できます。
//	    languages: [en, ja]               # optional: those of the answer
//
// A question in a plain list belongs to that language of its entry which is
// written in its script.
//
// # Confidence
//
// A score by tf-idf has no upper end and depends on the length of both texts, so
// that no threshold could be compared with it. Confidence sets it in proportion to
// what could have been scored, and is 1 for an entry's own question, word for word.
// It is the better of two measures:
//
//   - How near the question is to one question or keyword of the entry: the root of
//     its score divided by the score which that text gets when it is asked itself.
//     With its weights (rare words weigh more, and words that the book does not
//     know weigh most) that is the geometric mean of the cosine between the two and
//     of the share of the question's words that were found.
//   - How much of the question the entry has in all its questions and keywords
//     together: the root of the score divided by that of a text which has every word
//     of the question, and 0.77 at most, as words found here and there may mean
//     something else.
//
// Both are the same for short texts and long ones, for words and for pairs of
// characters. What the question has and the entry has not counts against both, so
// that a long question which merely contains a keyword stays below Threshold.
//
// Words say nothing of negation: "do not cancel my order" is answered as "cancel
// my order".
package answers

// Package inbox is a web page as a channel: a list of what waits, and one page per question to answer it on. It works
// without JavaScript, on a phone, and by keyboard; it loads nothing from elsewhere.
//
// Looking never answers: GET and HEAD change nothing, whoever or whatever follows a link. A POST answers, and the page then
// says what the broker's verdict was: saved, or why not and that the question is still open.
//
// A page is reached by somebody the configuration can identify (the operating system's user on loopback, or a proxy's
// header), or by a link with a reply token, which makes its holder the recipient it was made for. A link alone is enough to
// answer, as far as the broker lets a bearer answer, and never enough to approve.
//
// Serve it over https, or on loopback: browsers do not say where a form came from over plain http, and then it is refused.
package inbox

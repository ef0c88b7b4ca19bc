"""Small PDF files, written by hand."""


def pdf(*texts: str, encrypted: bool = False) -> bytes:
    """Return a PDF with a page for each string. An empty string makes an empty page.

    An ``encrypted`` one requires an unknown password.
    """
    count = len(texts)
    pages = [f"{4 + 2 * number} 0 R" for number in range(count)]
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{' '.join(pages)}] /Count {count} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(texts):
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
            f"/Resources << /Font << /F1 3 0 R >> >> /Contents {5 + 2 * number} 0 R >>"
        )
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET" if text else ""
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    more = ""
    if encrypted:
        objects.append(f"<< /Filter /Standard /V 1 /R 2 /P -4 /O <{'ab' * 32}> /U <{'cd' * 32}> >>")
        more = f" /Encrypt {len(objects)} 0 R /ID [<00> <00>]"
    body, places = "%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    start, size = len(body), len(objects) + 1
    body += f"xref\n0 {size}\n0000000000 65535 f \n{table}"
    body += f"trailer\n<< /Size {size} /Root 1 0 R{more} >>\nstartxref\n{start}\n%%EOF\n"
    return body.encode("latin-1")

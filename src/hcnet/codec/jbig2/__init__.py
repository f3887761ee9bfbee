"""JBIG2 (ITU-T T.88) files and PDFs of binary pages: lossless, with parts as symbols."""

from hcnet.codec.jbig2.documents import write_file
from hcnet.codec.jbig2.pdf import write_pdf

__all__ = ["write_file", "write_pdf"]

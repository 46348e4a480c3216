// What scrolls sideways must be within reach of the keyboard, and only while it scrolls.
const look = () => {
  for (const box of document.querySelectorAll('pre, figure, .formula, .table-wrapper')) {
    if (box.scrollWidth > box.clientWidth + 1) box.tabIndex = 0;
    else box.removeAttribute('tabindex');
  }
};
addEventListener('resize', look);
addEventListener('load', look);
